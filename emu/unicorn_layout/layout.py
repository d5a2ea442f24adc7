"""The offsets in Unicorn's private structures, for the library of this host.

Unicorn's public register calls cost about a microsecond each, and it offers no call at all for
delivering an exception to the guest's own vector.  Both are possible, because the wheels export
QEMU's functions, and because its structures have fixed offsets.  There are two ways to them:

* the library is the known one: the tables in the source are used, and nothing is searched;
* it is another one: the offsets are found by experiments, once, and kept on disk.

Where the experiments fail the library cannot be used (`UnusableLibraryError`).

A part of the layout belongs to the module that uses it, which also has its table: `part`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from emu.unicorn_layout import library
from emu.unicorn_layout.errors import UnusableLibraryError
from emu.unicorn_layout.library import Library, Parts

# The name of the part that is the same on every CPU.
COMMON: Final = "common"
# The name of the part that running QEMU's translated blocks needs; it is found when it is first asked for.
BLOCKS: Final = "blocks"
# The remedy where the layout cannot be found.
REMEDY: Final = f"pip install unicorn=={library.KNOWN_VERSION}"


@dataclass(frozen=True)
class WheelLayout:
    """The layout of one library."""

    parts: Parts | None = None
    """The offsets that experiments have found, in bytes: by part and name; None: the tables hold."""


class _Current:
    """The layout of this process."""

    layout: WheelLayout | None = None


def choose(this: Library, find_parts: Callable[[Library], Parts] | None = None) -> WheelLayout:
    """Return the layout of a library; `find_parts` replaces the experiments.

    Raises `UnusableLibraryError`.
    """
    if this.is_known:
        return WheelLayout()
    from emu.unicorn_layout.find import CalibrationError, find  # noqa: PLC0415  rarely needed

    try:
        return WheelLayout((find_parts or find)(this))
    except CalibrationError as error:
        raise _unusable(this, str(error)) from None


def _unusable(this: Library, reason: str) -> UnusableLibraryError:
    return UnusableLibraryError(f"{this} cannot be used: {reason}; {REMEDY}, on Linux or macOS")


def current() -> WheelLayout:
    """Return the layout that this process uses.  Raises `UnusableLibraryError`."""
    if _Current.layout is None:
        _Current.layout = choose(library.this())
    return _Current.layout


def assume(layout: WheelLayout) -> None:
    """Use a layout in this process."""
    _Current.layout = layout


def part(name: str, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the offsets of a part of the layout, whose table for the known library is `known`.

    Raises `UnusableLibraryError`.
    """
    parts = current().parts
    if parts is None:
        return known
    found = parts.get(name, {})
    if missing := sorted(set(known) - set(found)):
        raise _unusable(library.this(), f"calibration did not find {name} {', '.join(missing)}")
    return {offset: found[offset] for offset in known}


def further(name: str, known: Mapping[str, int]) -> Mapping[str, int]:
    """Return the offsets of a part that few commands need: it is searched when it is needed first.

    Raises `emu.unicorn_layout.find.CalibrationError` if they are not found.
    """
    from emu.unicorn_layout.find import CalibrationError, find  # noqa: PLC0415  rarely needed

    if current().parts is None:
        return known
    found = find(library.this(), name).get(name, {})
    if missing := sorted(set(known) - set(found)):
        raise CalibrationError(f"calibration did not find {name} {', '.join(missing)}")
    return {offset: found[offset] for offset in known}


def warning() -> str:
    """Return the warning that every user gets; "" if there is none."""
    if current().parts is None:
        return ""
    return f"{library.this()} is not the library that is tested: its layout was found by experiments"
