"""One instruction in a given state, on a CPU of the check."""
