"""Whole runs, plain and probed, compared."""
