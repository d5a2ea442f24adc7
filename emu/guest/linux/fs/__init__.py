"""Files, file systems and descriptors of the Linux guest."""
