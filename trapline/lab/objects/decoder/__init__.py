"""Checks of code that decodes, decides about or executes displaced instructions."""
