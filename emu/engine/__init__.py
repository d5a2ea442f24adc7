"""Unicorn, and all code that depends on it."""
