"""The command `trapline usdt`: the markers of a Linux program, listed and traced."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.elf.stapsdt import Constant, Marker, fetch_argument, markers, parse_arguments
from emu.support.did_you_mean import did_you_mean
from trapline.commands.shared import say
from trapline.ftrace import uprobe_events
from trapline.ftrace.options import Show, open_target, show_event, show_options, start
from trapline.ftrace.uprobe_events import TraceError
from trapline.support.own_files import OWN

if TYPE_CHECKING:
    from emu.guest.linux.guest import LinuxGuest


@click.command("usdt", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("-l", "listed", metavar="TARGET", help="List the markers of a path, a name in --root, or testbins:NAME.")
@click.option("-L", "detailed", metavar="TARGET", help="List them with their locations, semaphores and arguments.")
@click.option("-i", "enabled", is_flag=True, help="Accepted for perf-tools' usdt; semaphores are always set here.")
@click.argument("definition", metavar="[[PATH:]PROVIDER:NAME [ARGUMENT ...]]", required=False)
@click.argument("condition", metavar="[FILTER]", required=False)
@show_options("-t")
def usdt_command(
    listed: str | None,
    detailed: str | None,
    definition: str | None,
    condition: str | None,
    *,
    enabled: bool,
    **shown: Any,
) -> None:
    """List or trace the USDT markers of a Linux program.

    Without ARGUMENTs, those of the marker are shown that uprobe_events can name.  The semaphore of
    a marker is set while it is traced, so a program that asks it first does fire.

    Exit status 128 + N: signal N has killed the program.
    """
    del enabled  # the semaphores are set without it, as bcc, bpftrace and perf do
    show = Show(**shown)
    path = listed or detailed
    if path is not None:
        _list(path, show, detailed=detailed is not None)
        return
    if definition is None:
        raise click.UsageError("a marker is missing: PROVIDER:NAME, or -l PATH to list them")
    guest = start(show)
    try:
        lines = _lines(guest, definition)
    except TraceError as error:
        raise click.ClickException(str(error)) from None
    show_event(guest, lines, condition, show)


def _list(target: str, show: Show, *, detailed: bool) -> None:
    image = open_target(target, show)
    try:
        found = markers(image)
    except ElfError as error:
        raise click.ClickException(str(error)) from None
    if not found:
        raise click.ClickException(f"{target}: no USDT markers")
    if not detailed:
        for name in sorted({f"{one.provider}:{one.name}" for one in found}):
            say(name)
        return
    for one in found:
        say(f"{one.provider}:{one.name}")
        semaphore = f"  semaphore {one.semaphore:#x}" if one.semaphore else ""
        say(f"    location {one.location:#x}  offset {_offset(image, one.location):#x}{semaphore}")
        for number, text in enumerate(_described(image, one), 1):
            say(f"    arg{number}: {text}")


def _described(image: Image, marker: Marker) -> list[str]:
    """Return each argument in the syntax of the note, and in that of uprobe_events."""
    isa = image.isa
    names = {ours: theirs for theirs, ours in reversed(list(isa.linux.probe_registers.items()))}
    shown = []
    for one in parse_arguments(marker.arguments, isa):
        why = one.unreadable(image)
        if why:
            shown.append(f"{one.text:24} cannot be read: {why}")
            continue
        kind = f"{'signed' if one.signed else 'unsigned'} {8 * one.size} bits"
        fetched = fetch_argument(one, lambda register: names.get(register, register), partial(_distance, image, marker))
        constant = f"constant {one.operand.value}" if isinstance(one.operand, Constant) else None
        shown.append(f"{one.text:24} {kind:18} {fetched or constant or ''}".rstrip())
    return shown


def _distance(image: Image, marker: Marker, symbol: str) -> int | None:
    """Return a symbol's offset in the file, if all of it were mapped like the marker.

    None: it has no such symbol.
    """
    try:
        address = image.symbol(symbol, marker.location).value
    except ElfError:
        return None
    return address - marker.location + _offset(image, marker.location)


def _offset(image: Image, address: int) -> int:
    return image.offset_of(address) or 0


def _lines(guest: LinuxGuest, text: str) -> list[str]:
    """Return the definitions for a marker's addresses.  Raises `TraceError`."""
    head, _, rest = text.strip().partition(" ")
    path, provider, name = _split(head)
    assert guest.kernel.first is not None
    path = path or guest.kernel.first.path
    image = uprobe_events.open_image(guest, uprobe_events.find_target(guest, path))
    try:
        found = [one for one in markers(image) if one.name == name and provider in {"", one.provider}]
    except ElfError as error:
        raise TraceError(str(error)) from None
    if not found:
        known = (f"{one.provider}:{one.name}" for one in markers(image))
        hint = did_you_mean(f"{provider}:{name}", known, " (`trapline usdt -l` lists the markers)")
        raise TraceError(f"{path}: no marker {provider}:{name}{hint}")
    return [_line(image, one, rest.strip()) for one in found]


def _split(head: str) -> tuple[str, str, str]:
    own = OWN if head.startswith(OWN) else ""
    parts = head.removeprefix(own).rsplit(":", 2)
    path, provider, name = ["", "", *parts][-3:] if len(parts) < 3 else parts
    path = own + path
    return path, provider, name


def _line(image: Image, marker: Marker, rest: str) -> str:
    isa = image.isa
    names = {ours: theirs for theirs, ours in reversed(list(isa.linux.probe_registers.items()))}
    if not rest:
        distance, left_out, fetched = partial(_distance, image, marker), [], []
        for number, one in enumerate(parse_arguments(marker.arguments, isa), 1):
            text = fetch_argument(one, lambda register: names.get(register, register), distance)
            if text is None:
                left_out.append(f"arg{number} '{one.text}'")
            else:
                fetched.append(f"arg{number}={text}")
        rest = " ".join(fetched)
        if left_out:
            what = f"marker {marker.provider}:{marker.name} at {marker.location:#x}"
            click.echo(f"trapline: {what}: uprobe_events has no form of {', '.join(left_out)}: not shown", err=True)
    counter = ""
    if marker.semaphore:
        counter = f"({_offset(image, marker.semaphore):#x})"
    event = re.sub(r"\W", "_", f"{marker.provider}_{marker.name}")
    return f"p:{event} {image.path}:{_offset(image, marker.location):#x}{counter} {rest}".rstrip()
