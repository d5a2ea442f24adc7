"""The option --debug-root of commands that read stripped programs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import click

from emu.elf.debug_files import search_in, usual_folder


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
