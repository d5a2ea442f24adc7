"""The machines that a Linux kernel boots on: a module for each ISA, and their common parts."""
