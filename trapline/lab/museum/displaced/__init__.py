"""Exhibits about rules for displaced instructions."""
