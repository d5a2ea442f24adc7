"""The Linux guest: unmodified ELF programs, served by a system call layer in Python."""
