"""The files of a Linux kernel: image, symbols, types, modules."""
