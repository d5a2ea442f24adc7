"""The common part of the `uprobe` and `usdt` commands.

They are about the start of the program, and about showing its events.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.guest.base import GuestError
from emu.guest.linux.fs.stdio import of_this_process
from emu.guest.linux.guest import LinuxGuest
from emu.isa import ISAS
from emu.support.one_line import one_line
from providers.fidelity import Fidelity
from trapline.consumer.loop import Interrupts
from trapline.export.events import ExportError, Recording
from trapline.export.formats import FORMATS, export, format_of
from trapline.ftrace import output
from trapline.ftrace.definition import Definition, parse
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.filter import FilterError, TraceOptions, parse_filter
from trapline.ftrace.format import event_format
from trapline.ftrace.output import Merging
from trapline.ftrace.uprobe_events import EventTrace, TraceError, check_site, explain
from trapline.machine import linux_machine
from trapline.machine.programs import split
from trapline.support.options import cpu_options, debug_root_option
from trapline.support.output_files import OutputError, prepare
from trapline.support.own_files import TargetError, own_program
from trapline.support.targets import find_file

_SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Show:
    """The options of perf-tools' `uprobe` for the output."""

    command: str | None
    root: Path | None
    isa: str | None
    seconds: float | None
    header: bool
    stacks: bool
    formats: bool
    pid: int | None
    tid: int | None
    forced: bool
    fidelity: str = "exact"
    cpus: int = 1
    seed: int = 0
    export: str | None = None
    export_format: str | None = None


def show_options(tid: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a decorator that adds the options of `Show` to a command; `tid`: a thread's flag."""
    options = (
        click.option("-c", "command", metavar="CMD", help="The program to trace, with its arguments."),
        click.option("--root", type=click.Path(path_type=Path), help="The directory that the program sees as /."),
        debug_root_option,
        click.option("--export", metavar="FILE", help="Also write the trace for another tool, by the file's suffix."),
        click.option("--export-format", type=click.Choice(list(FORMATS)), help="The format of --export."),
        click.option("--isa", type=click.Choice(list(ISAS)), help="Refuse a program for another machine."),
        click.option("-F", "forced", is_flag=True, help="Force: trace an offset even if no instruction begins there."),
        click.option("-d", "seconds", type=float, metavar="SECS", help="Trace for this many seconds, then print."),
        click.option("-H", "header", is_flag=True, help="Print the column headings."),
        click.option("-s", "stacks", is_flag=True, help="Print user stacks."),
        click.option("-v", "formats", is_flag=True, help="Print the event's format, and do not trace."),
        click.option("-p", "pid", type=int, metavar="PID", help="Trace only this process."),
        click.option(
            "--fidelity",
            type=click.Choice(["exact", "linux"]),
            default="exact",
            show_default=True,
            help="linux: reproduce the bugs of Linux.",
        ),
        *cpu_options(),
        click.option(tid, "tid", type=int, metavar="TID", help="Trace only this thread."),
    )

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return add


def start(show: Show) -> LinuxGuest:
    """Start the program, before its first instruction is executed.

    Raises `click.ClickException`.
    """
    if show.command is None:
        raise click.UsageError("nothing to trace: -c 'PROGRAM ARGUMENTS'")
    try:
        words = own_program(split(show.command), ISAS[show.isa] if show.isa else None)
        return linux_machine.start_guest(
            linux_machine.LinuxOptions(
                words,
                isa=ISAS[show.isa] if show.isa else None,
                root=show.root,
                evaltime=linux_machine.EvalTime.EXEC,
                cpus=show.cpus,
                seed=show.seed,
                standard=of_this_process(_put(sys.stdout), _put(sys.stderr)),
                report=lambda text: click.echo(f"trapline: {one_line(text)}", err=True),
            )
        )
    except ValueError as error:
        raise click.UsageError(f"-c {show.command}: {error}") from None
    except (GuestError, TargetError) as error:
        raise click.ClickException(str(error)) from None


def open_target(target: str, show: Show) -> Image:
    """Return the ELF file that a TARGET names.  Raises `click.ClickException`."""
    isa = ISAS[show.isa] if show.isa else None
    try:
        return Image(find_file(target, isa, show.root), isa=isa)
    except (TargetError, ElfError) as error:
        raise click.ClickException(str(error)) from None


def _put(stream: Any) -> Callable[[bytes], object]:
    def put(data: bytes) -> None:
        stream.flush()
        stream.buffer.write(data)
        stream.flush()

    return put


def show_event(guest: LinuxGuest, lines: list[str], condition: str | None, show: Show) -> None:
    """Trace the addresses of an event until the program ends, or print its format.

    `lines` are definitions in the syntax of uprobe_events.  Raises `click.ClickException`, and
    SystemExit with 128 + N if signal N has killed the program.
    """
    try:
        definitions = [parse(line, guest.isa) for line in lines]
    except UprobeEventError as error:
        raise click.ClickException(explain(error)) from None
    if show.formats:
        click.echo(event_format(definitions[0], 1), nl=False)
        return
    _trace(guest, definitions, condition, show, _announcement(definitions[0], lines[0], show))


def _announcement(definition: Definition, line: str, show: Show) -> str:
    if show.seconds is None:
        return f"Tracing uprobe {definition.event} ({line}). Ctrl-C to end."
    return f"Tracing uprobe {definition.event} for {show.seconds:g} seconds (buffered)..."


def _trace(
    guest: LinuxGuest, definitions: list[Definition], condition: str | None, show: Show, announcement: str
) -> None:
    lines: list[str] = []
    buffered = show.seconds is not None or show.header
    write: Callable[[str], object] = lines.append if buffered else lambda text: click.echo(text, nl=False)
    merging = Merging(write, guest.reached)
    fields = frozenset({one.name for definition in definitions for one in definition.arguments} | {"common_pid"})
    try:
        wanted = parse_filter(condition, fields) if condition else None
        recording = Recording(guest.isa.name)
        form = format_of(show.export, show.export_format) if show.export is not None else ""
        if show.export is not None and form != "ctf":  # which is a folder
            prepare(show.export)
        events = EventTrace(
            guest,
            merging.write if show.cpus > 1 else write,
            TraceOptions(wanted, show.pid, show.tid, show.stacks, Fidelity(show.fidelity)),
            None if show.export is None else recording.events.append,
        )
        for definition in definitions:
            if not show.forced:
                check_site(guest, definition)
            events.add(definition)
        click.echo(announcement)
        with Interrupts(lambda _count: guest.interrupt()):
            try:
                guest.run(None if show.seconds is None else guest.now() + int(show.seconds * _SECOND))
            finally:
                events.finish()
                merging.finish()
    except FilterError as error:
        raise click.ClickException(f"setting filter: {error}") from None
    except (TraceError, ExportError, OutputError) as error:
        raise click.ClickException(str(error)) from None
    except GuestError as error:
        raise click.ClickException(error.report()) from None
    if show.export is not None:
        recording.end = guest.now()
        recording.events.sort(key=lambda one: one.time)
        _export(recording, show.export, form, show.command or "")
    if show.header:
        click.echo(output.HEADER.format(count=events.count, cpus=show.cpus), nl=False)
    for line in lines:
        click.echo(line, nl=False)
    click.echo("\nEnding tracing...")
    if guest.killed:
        click.echo(f"trapline: {guest.ending()}", err=True)
        raise SystemExit(guest.exit_status)


def _export(recording: Recording, path: str, form: str, title: str) -> None:
    try:
        for line in export(recording, path, form, title):
            click.echo(f"trapline: {line}", err=True)
    except ExportError as error:
        raise click.ClickException(str(error)) from None
