"""Displaced instructions: what becomes of each, decided once, as data."""
