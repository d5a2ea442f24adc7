"""How tables of system call numbers are written."""

from __future__ import annotations


def numbered(*runs: tuple[int, str]) -> dict[int, str]:
    """Return name by number: each run gives its first number and the names that follow one another from there."""
    return {number: name for first, names in runs for number, name in enumerate(names.split(), first)}
