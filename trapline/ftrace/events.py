"""The file uprobe_events as an object: lines written to it add and delete events, reading it lists them.

Source: Linux 6.12 kernel/trace/trace_uprobe.c (register_trace_uprobe, append_trace_uprobe),
trace_dynevent.c (dyn_event_release).
"""

from __future__ import annotations

import re

from emu.isa.base import Isa
from trapline.ftrace import fetch
from trapline.ftrace.definition import GROUP, Definition, parse
from trapline.ftrace.errors import UprobeEventError

_DELETE = re.compile(r"-:(?:(?P<group>[^\s/.]*)[/.])?(?P<event>\S*)(?P<rest>.*)")


class EventSet:
    """Events by group and name; one may have several places."""

    def __init__(self, isa: Isa) -> None:
        self._isa = isa
        self._events: dict[tuple[str, str], list[Definition]] = {}

    def write(self, text: str) -> None:
        """Obey lines, in order, up to the first that is refused.

        Raises `UprobeEventError`, and `LookupError` if an event to be deleted is not there.
        """
        for line in text.splitlines():
            stripped = line.split("#", 1)[0].strip()
            if stripped.startswith("-"):
                self._delete(stripped)
            elif stripped:
                self._add(parse(stripped, self._isa), stripped)

    def truncate(self) -> None:
        """Delete all events: what opening the file with `>` does."""
        self._events.clear()

    def definitions(self) -> list[Definition]:
        """Return all places of all events, in the order they were added."""
        return [one for places in self._events.values() for one in places]

    def __str__(self) -> str:
        """Give what reading the file gives."""
        return "".join(f"{one}\n" for one in self.definitions())

    def _add(self, new: Definition, line: str) -> None:
        places = self._events.setdefault((new.group, new.event), [])
        if places:
            old = places[0]
            if old.returns is not new.returns:
                raise UprobeEventError("DIFF_PROBE_TYPE", line, 0)
            if [(one.name, one.type) for one in old.arguments] != [(one.name, one.type) for one in new.arguments]:
                raise UprobeEventError("DIFF_ARG_TYPE", line, 0)
            if new in places:
                raise UprobeEventError("SAME_PROBE", line, 0)
        places.append(new)

    def _delete(self, line: str) -> None:
        found = _DELETE.fullmatch(line)
        if found is None or not (found["event"] or found["group"]):
            raise UprobeEventError("BAD_DEFINITION", line, 0)
        group, event, rest = found["group"] or GROUP, found["event"], found["rest"].split()
        names = [key for key in self._events if key[0] == group and event in {"", key[1]}]
        if not names:
            raise LookupError(f"there is no event {group}/{event}")
        for key in names:
            self._events[key] = [one for one in self._events[key] if not _narrowed(one, rest)]
            if not self._events[key]:
                del self._events[key]


def _narrowed(definition: Definition, rest: list[str]) -> bool:
    """Tell whether a definition is what a deletion names: its place, and its arguments, if those are given."""
    if not rest:
        return True
    path, _, offset = rest[0].rpartition(":")
    shown = [f"{one.name}={one.text}" for one in definition.arguments]
    return path == definition.path and fetch.number(offset) == definition.offset and rest[1:] in ([], shown)
