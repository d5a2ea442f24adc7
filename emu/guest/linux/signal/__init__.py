"""Signals of the Linux guest: sent, pending, delivered."""
