"""Checks of the user's compiled objects, which run in the function guest."""
