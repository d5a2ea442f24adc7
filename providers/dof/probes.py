"""The probes that a user program describes in DOF.

They are in provider sections, which are checked as the kernel checks them.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/dtrace.c
(dtrace_helper_provider_validate, dtrace_helper_provide_one, dtrace_dof_relocate); structures:
sys/dtrace.h (dof_provider_t, dof_probe_t).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from emu.support.immutable import immutable
from emu.support.words import WORD_MASK
from providers.dof.layout import LINK, RELOCATION, SectionType
from providers.dof.sections import DofError, DofSection, DofSections

# strtab, probes, prargs, proffs, name, and the stability of five names.
_PROVIDER: Final = struct.Struct("<10I")
# addr, func, name, nargv, xargv, argidx, offidx, nargc, xargc, noffs, enoffidx, nenoffs, pad, pad.
_PROBE: Final = struct.Struct("<QIIIIIIBBHIHHI")
_OFFSET: Final = 4
_ADDRESS: Final = 8
# Bits of an address by the program's data model, ILP32 or LP64; the structures are those of 64 bits in both.
_MASKS: Final = {1: (1 << 32) - 1, 2: WORD_MASK}
# Kinds of relocation: none, the load address of the object is added, or the address of the field itself.
_NONE, _SETX, _DOFREL = 0, 1, 2
_NAME_MAX: Final = 64
_FUNCTION_MAX: Final = 192
_TYPE_MAX: Final = 128
# The largest number of probes, places, types of arguments and relocations of one piece of DOF together.  Sections can
# name the same section again and again, so that 256 KiB would make millions of them.  FreeBSD bounds only the places,
# by the same number (kern.dtrace.fasttrap.max_probes).
MOST: Final = 250_000


@immutable
class HelperProbe:
    """A probe of a program, as its DOF describes it."""

    provider: str
    function: str
    name: str
    address: int
    """Address of the function."""
    sites: tuple[int, ...]
    """Addresses of the probe."""
    questions: tuple[int, ...]
    """Addresses where the program tests whether the probe is enabled."""
    types: tuple[str, ...]
    """Native types of the arguments."""
    translated: tuple[str, ...]
    mapping: tuple[int, ...]
    """For each translated argument the index of the native one."""


class _Parts(NamedTuple):
    """The sections of a provider."""

    provider: DofSection
    name: str
    strings: DofSection
    probes: DofSection
    arguments: DofSection
    offsets: DofSection
    questions: DofSection | None


def helper_probes(dof: bytes, load_address: int, place: int) -> list[HelperProbe]:
    """Return the probes that DOF describes.

    `load_address` is the program's load address as it reports it (dofhp_addr), `place` is the
    address of the DOF in its memory.  Raises `DofError`.
    """
    return list(_HelperDof(DofSections(dof, defines_probes=True), load_address, place).probes())


class _HelperDof:
    def __init__(self, sections: DofSections, load_address: int, place: int) -> None:
        self._sections = sections
        self._data = bytearray(sections.data)
        # Relocations of 32-bit programs change only half of the field: a carry out of that half is lost.
        self._mask = _MASKS[sections.model]
        self._made = 0
        for table, target in sections.relocations():
            self._relocate(table, target, load_address, place)

    def _count(self, more: int) -> None:
        """Count what is made of the DOF.  Raises `DofError` above `MOST`."""
        self._made += more
        if self._made > MOST:
            raise DofError(f"it describes more than {MOST:,} probes, places, types and relocations", "E2BIG")

    def _relocate(self, table: DofSection, target: DofSection, load_address: int, place: int) -> None:
        """Finish the addresses of functions (dtrace_dof_relocate)."""
        for at in _entries(table, RELOCATION.size):
            self._count(1)
            _name, kind, offset, _value = RELOCATION.unpack_from(self._data, at)
            if kind == _NONE:
                continue
            if kind not in {_SETX, _DOFREL}:
                table.bad(f"a relocation of kind {kind}")
            if offset % _ADDRESS or offset + _ADDRESS > target.size:
                table.bad("a relocation outside of its section")
            where = target.offset + offset
            added = load_address if kind == _SETX else place + where
            value = int.from_bytes(self._data[where : where + _ADDRESS], "little") + added
            self._data[where : where + _ADDRESS] = (value & WORD_MASK).to_bytes(_ADDRESS, "little")

    def probes(self) -> Iterator[HelperProbe]:
        """Yield the probes of every provider section."""
        for section in self._sections.of_type(SectionType.PROVIDER):
            parts = self._parts(section)
            for at in _entries(parts.probes, _PROBE.size):
                yield self._probe(parts, at)

    def _parts(self, section: DofSection) -> _Parts:
        if section.size < _PROVIDER.size or section.offset % 4:
            section.bad("a provider that is too small or not aligned")
        strings, probes, arguments, offsets, name, *_ = _PROVIDER.unpack_from(self._data, section.offset)
        questions = None
        if section.size >= _PROVIDER.size + LINK.size:
            (link,) = LINK.unpack_from(self._data, section.offset + _PROVIDER.size)
            questions = self._sections.named(link, section, SectionType.PRENOFFS) if link else None
        table = self._sections.named(strings, section, SectionType.STRTAB)
        found = _Parts(
            section,
            self._text(table, name, _NAME_MAX, section),
            table,
            self._sections.named(probes, section, SectionType.PROBES),
            self._sections.named(arguments, section, SectionType.PRARGS),
            self._sections.named(offsets, section, SectionType.PROFFS),
            questions,
        )
        if found.probes.entry < _PROBE.size or found.probes.entry % _ADDRESS or found.probes.entry > found.probes.size:
            found.probes.bad("probes of the wrong size")
        return found

    def _probe(self, parts: _Parts, at: int) -> HelperProbe:
        (address, function, name, native, translated, mapping, first, nargs, nxargs, count, first_question,
         count_questions, _pad, _pad2) = _PROBE.unpack_from(self._data, at)  # fmt: skip
        if not count + count_questions:
            parts.probes.bad("a probe without a place")
        self._count(1 + count + count_questions + nargs + nxargs)
        if mapping + nxargs > parts.arguments.size:
            parts.probes.bad("an argument mapping outside of its section")
        start = parts.arguments.offset + mapping
        mapped = tuple(self._data[start : start + nxargs])
        if any(one >= nargs for one in mapped):
            parts.probes.bad("an argument mapping to an argument that does not exist")
        places = self._words(parts.offsets, first, count)
        asked: tuple[int, ...] = ()
        if count_questions:
            if parts.questions is None:
                parts.probes.bad("is-enabled offsets without their section")
            asked = self._words(parts.questions, first_question, count_questions)
        return HelperProbe(
            parts.name,
            self._text(parts.strings, function, _FUNCTION_MAX, parts.probes),
            self._text(parts.strings, name, _NAME_MAX, parts.probes),
            address & self._mask,
            tuple(address + offset & self._mask for offset in places),
            tuple(address + offset & self._mask for offset in asked),
            self._types(parts, native, nargs),
            self._types(parts, translated, nxargs),
            mapped,
        )

    def _text(self, strings: DofSection, offset: int, longest: int, user: DofSection) -> str:
        found = self._sections.string(strings, offset, user)
        if len(found) >= longest:
            user.bad("a name that is too long")
        return found

    def _types(self, parts: _Parts, offset: int, count: int) -> tuple[str, ...]:
        found = []
        for _ in range(count):
            found.append(self._text(parts.strings, offset, _TYPE_MAX + 1, parts.probes))
            offset += len(found[-1].encode("utf-8", "surrogateescape")) + 1
        return tuple(found)

    def _words(self, section: DofSection, first: int, count: int) -> tuple[int, ...]:
        if section.entry != _OFFSET or (first + count) * _OFFSET > section.size:
            section.bad("offsets outside of their section")
        words: tuple[int, ...] = struct.unpack_from(f"<{count}I", self._data, section.offset + _OFFSET * first)
        return words


def _entries(section: DofSection, size: int) -> Iterator[int]:
    """Yield the offsets of a section's entries.

    A remainder of less than `size` bytes at the section's end is not an entry.
    """
    if section.entry < size:
        raise DofError(f"section {section.number}: entries of {section.entry} bytes")
    yield from range(section.offset, section.offset + section.size - size + 1, section.entry)
