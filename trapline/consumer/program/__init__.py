"""Programs of a command line: compiled, listed, saved."""
