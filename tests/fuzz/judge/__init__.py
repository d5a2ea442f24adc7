"""An independent judge of the CPU below the guests: cases of a few instructions, executed here, by the host's CPU and below qemu-user."""
