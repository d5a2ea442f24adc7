"""The error of the assembler."""

from __future__ import annotations


class AssemblyError(Exception):
    """Text that cannot be assembled: the message names the instruction and what is wrong."""
