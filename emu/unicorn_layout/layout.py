"""The offsets in Unicorn's private structures, for the library of this host.

Unicorn's public register calls cost about a microsecond each, and it offers no call at all for
delivering an exception to the guest's own vector.  Both are possible, because the wheels export
QEMU's functions, and because its structures have fixed offsets.  There are two ways to them, and
one to do without them:

| mode | when | what |
| --- | --- | --- |
| table | the library is the known one | the tables in the source: nothing is searched |
| calibrated | it is another one | the offsets are found by experiments, once, and kept on disk |
| portable | they are not found, or TRAPLINE_ENGINE asks for it | public calls alone are used, more \
slowly; the tables are used as names of registers |

A part of the layout belongs to the module that uses it, which also has its table: `part`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from emu.unicorn_layout import library
from emu.unicorn_layout.library import Library, Parts
from emu.unicorn_layout.modes import VARIABLE, Mode

# The name of the part that is the same on every CPU.
COMMON: Final = "common"
# The name of the part that running QEMU's translated blocks needs; it is found when it is first asked for.
BLOCKS: Final = "blocks"
# The remedy where the layout cannot be found.
REMEDY: Final = f"pip install unicorn=={library.KNOWN_VERSION}"


@dataclass(frozen=True)
class WheelLayout:
    """The layout of one library, as far as it is known."""

    mode: Mode
    reason: str
    """Why it is this mode: a sentence without its first word, "since ..."."""
    parts: Parts = field(default_factory=dict)
    """The offsets that experiments have found, in bytes: by part and name."""


class _Current:
    """The layout of this process."""

    layout: WheelLayout | None = None


def choose(this: Library, find_parts: Callable[[Library], Parts] | None = None) -> WheelLayout:
    """Return the layout of a library; `find_parts` replaces the experiments."""
    if this.is_known:
        return WheelLayout(Mode.TABLE, "this library is the known one")
    from emu.unicorn_layout.find import CalibrationError, find  # noqa: PLC0415  rarely needed

    try:
        return WheelLayout(Mode.CALIBRATED, f"{this} is not the known library", (find_parts or find)(this))
    except CalibrationError as error:
        return WheelLayout(Mode.PORTABLE, str(error))


def current() -> WheelLayout:
    """Return the layout that this process uses."""
    if _Current.layout is None:
        if os.environ.get(VARIABLE) == Mode.PORTABLE:
            _Current.layout = WheelLayout(Mode.PORTABLE, f"{VARIABLE} asks for it")
        else:
            _Current.layout = choose(library.this())
    return _Current.layout


def assume(layout: WheelLayout) -> None:
    """Use a layout in this process."""
    _Current.layout = layout


def part(name: str, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the offsets of a part of the layout, whose table for the known library is `known`.

    In portable mode that is the table: its numbers only tell registers apart.
    """
    layout = current()
    if layout.mode is not Mode.CALIBRATED:
        return known
    found = layout.parts.get(name, {})
    missing = sorted(set(known) - set(found))
    if missing:
        assume(WheelLayout(Mode.PORTABLE, f"calibration did not find {name} {', '.join(missing)}"))
        return known
    return {offset: found[offset] for offset in known}


def further(name: str, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the offsets of a part that few commands need: it is searched when it is needed first.

    Raises `emu.unicorn_layout.find.CalibrationError` if they are not found.
    """
    from emu.unicorn_layout.find import CalibrationError, find  # noqa: PLC0415  rarely needed

    layout = current()
    if layout.mode is Mode.TABLE:
        return known
    if layout.mode is Mode.PORTABLE:
        raise CalibrationError(f"none in {layout.mode} mode")
    found = find(library.this(), name).get(name, {})
    if missing := sorted(set(known) - set(found)):
        raise CalibrationError(f"calibration did not find {name} {', '.join(missing)}")
    return {offset: found[offset] for offset in known}


def warning() -> str:
    """Return the warning that every user gets; "" if there is none."""
    layout, this = current(), library.this()
    match layout.mode:
        case Mode.CALIBRATED:
            return f"{this} is not the library that is tested: its layout was found by experiments"
        case Mode.PORTABLE if os.environ.get(VARIABLE) != Mode.PORTABLE:
            return f"portable mode, which is slow: {layout.reason}; {REMEDY}"
        case _:
            return ""
