"""Flow indentation (-F): calls and returns as nested lines.

Source: FreeBSD libdtrace dt_consume.c (dt_flowindent).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from trapline.consumer.records.decode import BufferRecord
    from trapline.framework.base.program import ProbeDescription


class Direction(Enum):
    """The role of a probe in the flow."""

    ENTRY = auto()
    RETURN = auto()
    NONE = auto()


def direction(name: str) -> Direction:
    """Decide by a probe's name: `entry` or `...-entry`, `return` or `...-return`, else neither."""
    for word, found in (("entry", Direction.ENTRY), ("return", Direction.RETURN)):
        # The first occurrence must be the end of the name, as strstr() in libdtrace has it.
        position = name.find(word)
        if position >= 0 and position + len(word) == len(name) and (position == 0 or name[position - 1] == "-"):
            return found
    return Direction.NONE


@dataclass(slots=True)
class Flow:
    """The current indentation."""

    probe_of: Callable[[int], int]
    """Gives the probe id of an EPID."""
    indent: int = 0
    last: int = 0
    """EPID of the previous record."""

    def line(self, record: BufferRecord, probe: int, description: ProbeDescription) -> str:
        """Return the text of a record's line, and indent or unindent.

        If an entry probe has several enablings, only the first indents; of a return probe's only
        the last unindents.
        """
        turn = direction(description.name)
        if turn is Direction.ENTRY and self._other_enabling(self.last, record.epid, probe):
            turn = Direction.NONE
        if turn is Direction.RETURN and self._other_enabling(record.following, record.epid, probe):
            turn = Direction.NONE
        arrow = "=" if description.provider == "syscall" else "-"
        if turn is Direction.RETURN:
            self.indent = max(self.indent - 2, 0)
            return f"{'':{self.indent}} <{arrow} {description.function}"
        blanks = " " * self.indent
        if turn is Direction.ENTRY:
            self.indent += 2
            return f"{blanks} {arrow}> {description.function}"
        return f"{blanks}| {description.function}:{description.name}"

    def _other_enabling(self, other: int, epid: int, probe: int) -> bool:
        return bool(other) and other != epid and self.probe_of(other) == probe
