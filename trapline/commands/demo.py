"""The command `trapline demo`."""

from __future__ import annotations

import shutil

import click
from rich.columns import Columns
from rich.panel import Panel
from rich.text import Text

from emu.guest.base import GuestError
from emu.isa import DEFAULT_ISA, ISAS
from trapline.commands.shared import ReportConsole
from trapline.lab import demo
from trapline.lab.demo import Traced
from trapline.lab.step import report

# Columns assumed where there is no terminal.
_WIDTH = 100


@click.command("demo")
@click.option("--isa", type=click.Choice(list(ISAS)), default=DEFAULT_ISA.name, help="ISA of the one firing shown.")
def demo_command(isa: str) -> None:
    """Trace the kernel guest on every ISA with one D program, then take one firing apart."""
    width = shutil.get_terminal_size((_WIDTH, 24)).columns
    console = ReportConsole(width)
    console.print(Text.assemble(("trapline dtrace -qn '", "dim"), (demo.PROGRAM, "bold"), ("'", "dim")))
    try:
        with console.status("booting a kernel of each ISA"):
            panels = [_panel(traced) for traced in demo.traces()]
        console.print(Columns(panels))
        console.print()
        for line in report.text(demo.firing(ISAS[isa])):
            console.print(line, soft_wrap=True)
    except GuestError as error:
        raise click.ClickException(error.report()) from None
    console.print("\nNext: trapline dtrace --help, trapline step --help, trapline sites --help, and docs/.")


def _panel(traced: Traced) -> Panel:
    cost = (
        f"{traced.instructions:,} instructions\n{traced.virtual_seconds:.3f} virtual seconds\nin {traced.seconds:.2f} s"
    )
    body = Text.assemble(traced.output.strip("\n"), "\n\n", (cost, "dim"))
    return Panel(body, title=traced.isa.title, title_align="left", expand=False)
