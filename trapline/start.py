"""The start of the command: nothing is imported from a package of the same name that is not ours."""

from __future__ import annotations

import sys

from trapline.neighbours import intruder


def main() -> None:
    """Run `trapline`, if its packages are its own."""
    problem = intruder()
    if problem is not None:
        sys.stderr.write(f"trapline: {problem}\n")
        sys.exit(1)
    from trapline.cli import main as command  # noqa: PLC0415  it imports those packages

    command()
