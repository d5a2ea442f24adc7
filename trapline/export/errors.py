"""The error of an export."""

from __future__ import annotations


class ExportError(Exception):
    """A trace that cannot be written in a format; the message says why, on one line."""
