"""The command `trapline step`."""

from __future__ import annotations

from pathlib import Path

import click

from emu.guest.base import GuestError
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA, ISAS
from emu.isa.disassembly import Syntax
from trapline.commands.shared import (
    json_option,
    lines_option,
    output_option,
    play,
    print_lines,
    require_terminal,
    syntax_option,
    tui_option,
    write,
)
from trapline.consumer.errors import ConsumerError
from trapline.d.errors import CompileError
from trapline.lab.step import report
from trapline.lab.step.faults import FAULTS
from trapline.lab.step.machines import StepRequest
from trapline.lab.step.recording import StepError
from trapline.lab.step.run import record, record_pair
from trapline.player.model import Played, title_of

_ALL = "all"


@click.command("step")
@click.option("-n", "clause", metavar="CLAUSE", help="A probe, such as 'fbt::malloc:entry /arg0 > 64/'.")
@click.option(
    "--uprobe", metavar="DEFINITION", help="A uprobe, as `trapline uprobe` takes it: 'p:NAME:SYMBOL' or 'r:...'."
)
@click.option("-c", "command", metavar="CMD", help="Run CMD: in the guest's shell, or as a Linux program.")
@click.option("--root", type=click.Path(path_type=Path), help="The directory that a Linux program sees as /.")
@click.option(
    "--guest",
    type=click.Choice(["kernel", "linux", "linux-kernel"]),
    help="The teaching kernel, a Linux program, or a Linux kernel that `trapline kernel get` has fetched.  "
    "[default: as CMD demands]",
)
@click.option("--isa", type=click.Choice([*ISAS, _ALL]), default=DEFAULT_ISA.name, show_default=True)
@click.option("--trap", type=click.Choice([path.value for path in TrapPath]), default="host", show_default=True)
@click.option("--sdt", type=click.Choice(["2005", "2013", "2018", "2024"]), default="2024", show_default=True,
              help="The generation of SDT that the kernel is built with.")  # fmt: skip
@click.option("--count", type=click.IntRange(1, 100), default=1, show_default=True, help="Record this many firings.")
@click.option("--from-enable", is_flag=True, help="Begin with the patching, byte by byte.")
@click.option(
    "--fault",
    type=click.Choice(list(FAULTS)),
    help="Make this mistake, and show what follows and where it begins.",
)
@click.option("--steps", "every_step", is_flag=True, help="Print every step, not only the stages.")
@syntax_option
@json_option
@lines_option("step")
@output_option("--html", "Write a page that plays the recording without a network", "html_file")
@tui_option
def step_command(
    clause: str | None,
    uprobe: str | None,
    command: str | None,
    root: Path | None,
    guest: str | None,
    isa: str,
    trap: str,
    sdt: str,
    count: int,
    fault: str | None,
    *,
    from_enable: bool,
    every_step: bool,
    syntax: str,
    json_file: str | None,
    lines_file: str | None,
    html_file: str | None,
    tui: bool,
) -> None:
    """Record the firing of a probe, instruction by instruction, and show it.

    \b
    trapline step -n 'fbt::malloc:entry'
    trapline step -n 'fbt::sys_read:return /execname == "cat"/' --isa aarch64 --trap guest --steps
    trapline step -n 'pid$target:a.out:main:entry' -c 'testbins:zoo markers'
    trapline step --uprobe 'r:testbins:zoo:marker_string' -c 'testbins:zoo markers'
    trapline step --guest linux-kernel -n 'fbt::do_sys_openat2:entry' -c 'cat /etc/passwd'
    """  # noqa: D301  (click reads the backspace: lines as they are)
    if (clause is None) is (uprobe is None):
        raise click.UsageError("name what to record: -n 'fbt::malloc:entry', or --uprobe 'p:NAME:SYMBOL'")
    files = {json_file, lines_file, html_file} - {None}
    if tui and files:
        raise click.UsageError("--tui plays the recording, and writes no file")
    if tui:
        require_terminal()
    played: list[Played] = []
    for one in ISAS.values() if isa == _ALL else (ISAS[isa],):
        mistake = FAULTS[fault] if fault else None
        if mistake is not None and isa == _ALL and not mistake.possible(one):
            click.echo(f"{one.name}: {fault} cannot occur: {mistake.reason}", err=True)
            continue
        request = StepRequest(
            clause or uprobe or "", one, guest, TrapPath(trap), command, root, int(sdt), count, from_enable, mistake,
            uprobe=uprobe is not None,
        )  # fmt: skip
        played += _recorded(request, Syntax(syntax))
    if tui:
        from trapline.player.terminal_model import terminal_firings  # noqa: PLC0415  textual is an optional package

        play(title_of(played), terminal_firings(played))
        return
    recordings = [one.recording for one in played if one.good is not True]
    if json_file is not None:
        write(json_file, report.as_json(recordings) + "\n")
    if lines_file is not None:
        write(lines_file, report.as_json_lines(recordings))
    if html_file is not None:
        from trapline.player.page import page  # noqa: PLC0415  only the user of a page waits for jinja2

        write(html_file, page(played))
    if files:
        return
    for number, recording in enumerate(recordings):
        if number:
            click.echo()
        print_lines(report.text(recording, every_step=every_step))


def _recorded(request: StepRequest, syntax: Syntax) -> list[Played]:
    """Return recordings with their labels; of a fault the wrong one and the right one."""
    try:
        if request.fault is None:
            return [Played(request.isa.name, record(request, syntax))]
        wrong, right = record_pair(request, syntax)
    except CompileError as error:
        raise click.ClickException(error.text(errtags=False)) from None
    except (StepError, GuestError, ConsumerError) as error:
        raise click.ClickException(str(error)) from None
    return [
        Played(f"{request.isa.name}, {request.fault.name}", wrong, good=False),
        Played(f"{request.isa.name}, right", right, good=True),
    ]
