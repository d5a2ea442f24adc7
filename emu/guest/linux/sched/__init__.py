"""The scheduler of the Linux guest."""
