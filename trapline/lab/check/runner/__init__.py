"""A check from beginning to end: units of work, workers, results."""
