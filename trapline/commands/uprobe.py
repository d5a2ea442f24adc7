"""The command `trapline uprobe`: the `uprobe` of perf-tools, on a Linux program in the guest."""

from __future__ import annotations

from typing import Any

import click

from emu.elf.file import ElfError
from trapline.commands.shared import say
from trapline.ftrace.options import Show, open_target, show_event, show_options, start
from trapline.ftrace.uprobe_events import TraceError, quoted, resolve


@click.command("uprobe", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-l",
    "target",
    metavar="TARGET",
    help="List the functions of a path, a name in --root, or testbins:NAME.",
)
@click.argument("definition", required=False)
@click.argument("condition", metavar="[FILTER]", required=False)
@show_options("-L")
def uprobe_command(target: str | None, definition: str | None, condition: str | None, **shown: Any) -> None:
    """Trace a function of a Linux program with a uprobe.

    DEFINITION is `p:[ALIAS ]NAME:SYMBOL [ARGUMENT ...]`, `r:` for its return; or a line of
    uprobe_events, `p[:[GROUP/]EVENT] PATH:OFFSET[(REFCTR)] [ARGUMENT ...]`.  NAME is a path, a
    program or a library, testbins:NAME for one of the package's own.  FILTER tests arguments:
    `'file == 0'`, `'cmd ~ "SELECT*"'`.

    Exit status 128 + N: signal N has killed the program.
    """
    show = Show(**shown)
    if target is not None:
        if definition is not None:
            raise click.UsageError("-l takes no definition")
        _list(target, show)
        return
    if definition is None:
        raise click.UsageError("a definition is missing: p:NAME:SYMBOL")
    guest = start(show)
    try:
        lines = resolve(guest, definition)
    except TraceError as error:
        raise click.ClickException(str(error)) from None
    if len(lines) > 1:
        click.echo(f"trapline: {definition}: there are {len(lines)} functions of that name; all are traced", err=True)
    show_event(guest, lines, condition, show)


def _list(target: str, show: Show) -> None:
    image = open_target(target, show)
    try:
        names = image.function_names
    except ElfError as error:
        raise click.ClickException(str(error)) from None
    if not names:
        raise click.ClickException(
            f"{target}: no function symbols, and no .eh_frame that tells where functions are (stripped?)"
        )
    for name in names:
        say(quoted(name))
