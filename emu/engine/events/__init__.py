"""Observers of one engine's CPU: accesses, blocks, counts of events."""
