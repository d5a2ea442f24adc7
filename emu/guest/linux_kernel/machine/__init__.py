"""The machine that a Linux kernel runs on, from its boot to a snapshot."""
