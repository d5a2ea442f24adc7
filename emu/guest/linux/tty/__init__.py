"""Terminals of the Linux guest."""
