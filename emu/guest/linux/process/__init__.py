"""Processes of the Linux guest: start, limits, credentials, end."""
