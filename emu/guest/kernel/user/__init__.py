"""The programs of the kernel guest: their code, memory, files and processes."""
