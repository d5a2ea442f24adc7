"""The kernel guest with several CPUs."""
