"""Programs of a few instructions, executed by a guest, and by the host's CPU or qemu-user as its judge."""
