"""The command `trapline flame`: folded stacks as a flame graph."""

from __future__ import annotations

from pathlib import Path

import click

from emu.support.did_you_mean import counted
from trapline.commands.shared import OutputFile, write
from trapline.export import flame, folded
from trapline.export.events import ExportError
from trapline.support.input_files import readable

_FORMS = {".svg": flame.svg, ".html": flame.page, ".htm": flame.page}


@click.command("flame")
@click.argument("stacks", type=click.Path(path_type=Path, allow_dash=True, dir_okay=False))
@click.option(
    "-o",
    "--output",
    type=OutputFile(),
    metavar="FILE",
    help="An .svg or .html file; default: STACKS.html.",
)
@click.option("--title", help="The title of the graph; default: the name of STACKS.")
def flame_command(stacks: Path, output: str | None, title: str | None) -> None:
    """Draw folded STACKS as a flame graph.

    STACKS is a file of --export FILE.folded, or of another tool; - is standard input.
    """
    name = "standard input" if str(stacks) == "-" else str(stacks)
    output = output or ("flame.html" if str(stacks) == "-" else str(stacks.with_suffix(".html")))
    form = _FORMS.get(Path(output).suffix)
    if form is None:
        raise click.UsageError(f"-o {output}: the suffix must be .svg or .html")
    try:
        with click.open_file(str(readable(stacks)), encoding="utf-8", errors="surrogateescape") as file:
            read = folded.read(file.read(), name)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {(error.strerror or str(error)).lower()}") from None
    except ExportError as error:
        raise click.ClickException(str(error)) from None
    write(output, form(read, title or name), counted(len(read), "stack"))
