"""Unicorn, and everything that knows it is Unicorn."""
