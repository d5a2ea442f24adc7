"""Trapline: D programs, the framework that runs them, and the commands."""

__version__ = "0.1.0"
