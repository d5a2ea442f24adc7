"""Options that several commands have: --cpus, --seed and --debug-root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from emu.elf.debug_files import search_in, usual_folder
from emu.support.words import decimal

# Flag -> its least value, which is the default, and its greatest.
BOUNDS: Final = {"cpus": (1, 8), "seed": (0, (1 << 32) - 1)}
HELP: Final = {
    "cpus": "The number of CPUs on which the guest runs.",
    "seed": "Decides about the turns of several CPUs.",
}


def cpu_number(flag: str, text: str) -> int:
    """Return the value of one of the flags.  Raises ValueError with a message of one line."""
    least, most = BOUNDS[flag]
    number = decimal(text)
    if number is None or not least <= number <= most:
        raise ValueError(f"--{flag} {text}: expected a number from {least} to {most}")
    return number


def cpu_options() -> tuple[Callable[[Any], Any], ...]:
    """Return the two flags as options of click."""
    return tuple(
        click.option(f"--{flag}", type=click.IntRange(*bounds), default=bounds[0], show_default=True, help=HELP[flag])
        for flag, bounds in BOUNDS.items()
    )


def _search(ctx: click.Context, _parameter: click.Parameter, folder: Path | None) -> None:
    """Set the folder of debug files.

    An option that is not given is handled after those that are, so --root is known.
    """
    search_in(folder or usual_folder(ctx.params.get("root")))


debug_root_option: Final[Callable[[Any], Any]] = click.option(
    "--debug-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    expose_value=False,
    callback=_search,
    help="The folder of debug files for stripped programs; default: usr/lib/debug in the --root.",
)
