"""The file systems /proc and /sys of the Linux guest."""
