"""Address spaces and memory of the Linux guest."""
