"""Traced machines: a guest, the framework over it, and its providers."""
