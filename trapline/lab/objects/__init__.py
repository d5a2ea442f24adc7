"""Bring your own object: the user's compiled code runs in the function guest, and is judged."""
