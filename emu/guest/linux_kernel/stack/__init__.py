"""Stacks of a Linux kernel."""
