"""Definitions as people type them: `p:NAME:SYMBOL`, made into a line of uprobe_events."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from trapline.ftrace import uprobe_events

if TYPE_CHECKING:
    from emu.guest.linux.guest import LinuxGuest

_FORM: Final = re.compile(
    r"([pr]):(?:(?P<alias>[^\s:]+)\s+)?(?P<target>(?:testbins:)?\S+?):(?P<symbol>[^\s:]+?)(?P<rest>\s.*)?"
)


def resolve(guest: LinuxGuest, text: str) -> str:
    """Return a definition as uprobe_events takes it: a path and an offset.  Raises `TraceError`."""
    found = _FORM.fullmatch(text.strip())
    if found is None:
        return text
    kind, rest = found[1], found["rest"] or ""
    name, symbol = found["target"], found["symbol"]
    numeric = re.fullmatch(r"(0x[0-9a-fA-F]+|\d+)(%return)?(\([^)]*\))?", symbol)
    if found["alias"] is not None and numeric:
        return text
    path = uprobe_events.find_target(guest, name)
    file, full = uprobe_events.find_file(guest, path)
    del file
    if numeric:
        segment = full.rsplit("/", 1)[-1].split(".")[0]
        return f"{kind}:{found['alias'] or f'{segment}_{symbol}'} {full}:{symbol}{rest}"
    offset = uprobe_events.symbol_offset(uprobe_events.open_image(guest, full), symbol)
    return f"{kind}:{found['alias'] or symbol} {full}:{offset:#x}{rest}"
