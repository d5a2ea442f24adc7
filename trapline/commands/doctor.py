"""The command `trapline doctor`."""

from __future__ import annotations

import sys

import click

from emu.engine.qemu import block_layout as blocks_layout
from emu.engine.qemu import layout as engine_layout
from emu.engine.qemu import rewriters
from emu.engine.qemu.rewriters import REWRITERS
from emu.isa.calibration import KNOWN
from emu.support import disk_cache
from emu.unicorn_layout import layout, library
from emu.unicorn_layout.find import CalibrationError, experiment, understood
from emu.unicorn_layout.layout import BLOCKS, COMMON
from emu.unicorn_layout.library import Parts
from trapline.commands.shared import say
from trapline.framework.base.engines import chosen, described
from trapline.version import installed_version

# The offsets that every command needs; those that `trapline check` needs besides.
_TABLES = {COMMON: engine_layout.KNOWN, **KNOWN}
_BLOCKS = blocks_layout.KNOWN


@click.command("doctor")
@click.option("-v", "verbose", is_flag=True, help="Show the offsets that are used, in bytes.")
@click.option("--calibrate", is_flag=True, help="Find the offsets now, and compare them with those that are used.")
def doctor_command(*, verbose: bool, calibrate: bool) -> None:
    """Say how Trapline reads the state of Unicorn's CPUs on this host, and what runs D programs.

    \b
    trapline doctor
    trapline doctor --calibrate
    """  # noqa: D301  (click reads the backspace: lines as they are)
    current = layout.current()
    click.echo(f"{library.this()}: {_found(current)}")
    python = ".".join(str(number) for number in sys.version_info[:3])
    click.echo(f"trapline {installed_version()}, Python {python}, engine: {described(chosen())}")
    say(f"cache: {disk_cache.folder() or f'none, since {disk_cache.why_none()}'}")
    if blocks_layout.reason():
        click.echo(f"trapline check tries states in Python, since {blocks_layout.reason()}")
    for name, rewriter in REWRITERS.items():
        off = rewriters.reason(name)
        click.echo(f"{name:15} {f'off, since {off}' if off else 'on'}: {rewriter.does}")
    if verbose:
        click.echo(f"library: {library.this().path}")
        _show(_used(current))
    fits = not calibrate or _compare(current)
    if not fits:
        sys.exit(1)


def _found(current: layout.WheelLayout) -> str:
    if current.parts is None:
        return "its layout is known"
    return "its layout was found by experiments, since it is not the known library"


def _used(current: layout.WheelLayout) -> Parts:
    """Return the offsets that are used, by part."""
    return {**(current.parts or _TABLES), BLOCKS: blocks_layout.offsets() or _BLOCKS}


def _show(parts: Parts) -> None:
    for part, offsets in parts.items():
        for name, offset in offsets.items():
            click.echo(f"{part:8} {name:18} {offset:#8x}")


def _compare(current: layout.WheelLayout) -> bool:
    """Print what the experiments find; return whether it is what is used."""
    try:
        found = {**understood(experiment()), **understood(experiment(BLOCKS))}
    except CalibrationError as error:
        click.echo(f"trapline: {error}", err=True)
        return False
    used = _used(current)
    offsets = [(part, name) for part in used for name in used[part]]
    differing = [(part, name) for part, name in offsets if found[part][name] != used[part][name]]
    for part, name in differing:
        click.echo(f"{part} {name}: {found[part][name]:#x} was found, {used[part][name]:#x} is used")
    if not differing:
        click.echo(f"calibration finds the {len(offsets)} offsets that are used")
    return not differing
