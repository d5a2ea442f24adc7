"""Timers of the Linux guest."""
