"""Functions that were inlined: the calls that have no frame on the stack.

DWARF has an entry for each call that was inlined, with its code, its name and the
line of the call; they nest as the calls did.

Source: DWARF 5, section 3.3.8; the names are those that `addr2line -i -f` shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from emu.elf.source.lines import Line, LineTable, SourceLines
from emu.elf.source.units import Entry, Unit, Units, code_of

_INLINED: Final = "DW_TAG_inlined_subroutine"
# Entries that contain code, or others that do.
_SCOPES: Final = frozenset(
    {
        "DW_TAG_compile_unit",
        "DW_TAG_partial_unit",
        "DW_TAG_namespace",
        "DW_TAG_module",
        "DW_TAG_subprogram",
        "DW_TAG_lexical_block",
        "DW_TAG_try_block",
        "DW_TAG_catch_block",
        _INLINED,
    }
)
# The attributes that lead from an entry to the one that has the name.
_LINKS: Final = ("DW_AT_abstract_origin", "DW_AT_specification")
_NAMES: Final = ("DW_AT_linkage_name", "DW_AT_MIPS_linkage_name", "DW_AT_name")
# More links than compilers make, and as many scopes in each other as a stack of Python has frames for.
_MOST_LINKS: Final = 8
_DEEPEST: Final = 200
_NAMELESS: Final = "??"


class SourceFrame(NamedTuple):
    """A function and the line in it, as its source has it."""

    function: str
    """The name of an inlined function; "" for the function that the code was made for."""
    line: Line | None


# The frame of code whose source is not known.
NO_SOURCE: Final = SourceFrame("", None)


class _Call(NamedTuple):
    """An inlined call."""

    code: Sequence[range]
    function: str
    line: Line | None
    """The line of the call."""
    outer: _Call | None
    """The inlined call that it was a part of."""
    depth: int


class Source:
    """The source of one file's code."""

    def __init__(self, units: Units) -> None:
        self._units = units
        self.lines = SourceLines(units)
        self._calls: dict[int, Sequence[_Call]] = {}

    def frames(self, address: int) -> tuple[SourceFrame, ...]:
        """Return the functions that an instruction is in: the innermost first, the real one last.

        Empty if nothing is known.
        """
        unit = self._units.at(address)
        if unit is None:
            return ()
        line = self.lines.table(unit).at(address)
        around = (call for call in self._inlined(unit) if any(address in part for part in call.code))
        call = max(around, key=attrgetter("depth"), default=None)
        if call is None and line is None:
            return ()
        found = []
        while call is not None:
            found.append(SourceFrame(call.function, line))
            line, call = call.line, call.outer
        return (*found, SourceFrame("", line))

    def _inlined(self, unit: Unit) -> Sequence[_Call]:
        """Return the inlined calls of a unit."""
        offset = unit.cu_offset
        if offset not in self._calls:
            try:
                self._calls[offset] = list(_calls(unit.get_top_DIE(), self.lines.table(unit), None, 0))
            except Exception:  # noqa: BLE001  (pyelftools meets bad input with whatever its parser ran into)
                self._calls[offset] = ()
        return self._calls[offset]


def _calls(parent: Entry, table: LineTable, outer: _Call | None, depth: int) -> Iterator[_Call]:
    """Yield the inlined calls below an entry."""
    before = parent.offset
    for child in parent.iter_children() if depth < _DEEPEST else ():
        if child.offset <= before:
            return  # a damaged link to a sibling
        before, inner = child.offset, outer
        if child.tag == _INLINED and (code := code_of(child)):
            line = table.line(_number(child, "DW_AT_call_file"), _number(child, "DW_AT_call_line"))
            inner = _Call(code, _name(child), line, outer, depth)
            yield inner
        if child.tag in _SCOPES and child.has_children:
            yield from _calls(child, table, inner, depth + 1)


def _number(entry: Entry, name: str) -> int:
    found = entry.attributes.get(name)
    return found.value if found is not None and isinstance(found.value, int) else 0


def _name(entry: Entry) -> str:
    """Return the name of an inlined function."""
    for _ in range(_MOST_LINKS):
        for name in _NAMES:
            if name in entry.attributes:
                return str(entry.attributes[name].value.decode(errors="backslashreplace"))
        link = next((name for name in _LINKS if name in entry.attributes), None)
        if link is None:
            break
        entry = entry.get_DIE_from_attribute(link)
    return _NAMELESS
