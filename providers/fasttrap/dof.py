"""The probes that a program describes in DOF: provider sections, checked as the kernel checks them.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/dtrace.c (dtrace_helper_slurp,
dtrace_helper_provider_validate, dtrace_helper_provide_one); structures: sys/dtrace.h
(dof_provider_t, dof_probe_t).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

_HEADER: Final = struct.Struct("<16sIIIIQQQQ")
_SECTION: Final = struct.Struct("<IIIIQQ")
_PROVIDER: Final = struct.Struct("<10I")
_PROBE: Final = struct.Struct("<QIIIIIIBBHIHHI")
_RELOCATION_HEADER: Final = struct.Struct("<III")
_RELOCATION: Final = struct.Struct("<IIQQ")
_MAGIC: Final = b"\x7fDOF"
# Bits of an address by the program's data model, ILP32 or LP64; the structures are those of 64 bits in both.
_MASKS: Final = {1: (1 << 32) - 1, 2: (1 << 64) - 1}
_LITTLE_ENDIAN: Final = 1
_STRTAB, _URELHDR, _PROVIDERS, _PROBES, _PRARGS, _PROFFS, _PRENOFFS = 8, 12, 15, 16, 17, 18, 26
# Kinds of relocation: the load address of the object is added, or the address of the field itself.
_SETX, _DOFREL = 1, 2
_NAME_MAX: Final = 64
_FUNCTION_MAX: Final = 192
_TYPE_MAX: Final = 128
_MASK: Final = _MASKS[2]
HEADER_SIZE: Final = _HEADER.size
# dtrace_dof_maxsize.
LARGEST: Final = 256 * 1024


class HelperDofError(Exception):
    """DOF that the kernel does not take; the message says why."""


@dataclass(frozen=True, slots=True)
class HelperProbe:
    """A probe of a program, as its DOF describes it."""

    provider: str
    function: str
    name: str
    address: int
    """Of the function."""
    sites: tuple[int, ...]
    """Addresses of the probe."""
    questions: tuple[int, ...]
    """Addresses where the program asks whether the probe is enabled."""
    types: tuple[str, ...]
    """Native types of the arguments."""
    translated: tuple[str, ...]
    mapping: tuple[int, ...]
    """For each translated argument the index of the native one."""


class _Section(NamedTuple):
    kind: int
    entry: int
    offset: int
    size: int


def loaded_size(header: bytes) -> int:
    """Return how many bytes of DOF there are, by its header.  Raises `HelperDofError`."""
    fields = _HEADER.unpack(header)
    ident = fields[0]
    if not ident.startswith(_MAGIC) or ident[4] not in _MASKS or ident[5] != _LITTLE_ENDIAN:
        raise HelperDofError("no DOF, or none of a data model there is")
    if not HEADER_SIZE <= fields[6] <= LARGEST:
        raise HelperDofError("DOF that is too small or too large")
    return int(fields[6])


def helper_probes(dof: bytes, load_address: int, place: int) -> list[HelperProbe]:
    """Return the probes that DOF describes.

    `load_address` is what the program says it was loaded at (dofhp_addr), `place` where the DOF is
    in its memory.  Raises `HelperDofError`.
    """
    try:
        return list(_Dof(bytearray(dof), load_address, place).probes())
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise HelperDofError(f"DOF that points outside of itself ({error})") from None


class _Dof:
    def __init__(self, data: bytearray, load_address: int, place: int) -> None:
        self._data = data
        header = _HEADER.unpack_from(data, 0)
        size, count, at = header[3], header[4], header[5]
        # 32-bit programs have their relocations done in half of the field: what is carried out of that does not count.
        self._mask = _MASKS.get(data[4], _MASK)
        self._sections = []
        for index in range(count):
            kind, _align, _flags, entry, offset, length = _SECTION.unpack_from(data, at + index * size)
            if offset + length > len(data):
                raise HelperDofError(f"section {index} ends outside of the DOF")
            self._sections.append(_Section(kind, entry, offset, length))
        for section in self._sections:
            if section.kind == _URELHDR:
                self._relocate(section, load_address, place)

    def _section(self, index: int, kind: int) -> _Section:
        section = self._sections[index]
        if section.kind != kind:
            raise HelperDofError(f"section {index} is of kind {section.kind}, not {kind}")
        return section

    def _relocate(self, header: _Section, load_address: int, place: int) -> None:
        """Finish the addresses of functions (dtrace_dof_relocate)."""
        _strings, table, target = _RELOCATION_HEADER.unpack_from(self._data, header.offset)
        relocations, fields = self._sections[table], self._section(target, _PROBES)
        for at in range(relocations.offset, relocations.offset + relocations.size, relocations.entry):
            _name, kind, offset, _data = _RELOCATION.unpack_from(self._data, at)
            if offset % 8 or offset + 8 > fields.size:
                raise HelperDofError("a relocation outside of its section")
            where = fields.offset + offset
            added = {0: 0, _SETX: load_address, _DOFREL: place + where}.get(kind)
            if added is None:
                raise HelperDofError(f"relocation of kind {kind}")
            value = int.from_bytes(self._data[where : where + 8], "little") + added
            self._data[where : where + 8] = (value & _MASK).to_bytes(8, "little")

    def _text(self, strings: _Section, index: int, longest: int) -> str:
        if index >= strings.size:
            raise HelperDofError("a string outside of its table")
        text = bytes(self._data[strings.offset + index : strings.offset + strings.size]).split(b"\0", 1)[0]
        if len(text) >= longest:
            raise HelperDofError("a name that is too long")
        return text.decode()

    def _types(self, strings: _Section, index: int, count: int) -> tuple[str, ...]:
        found = []
        for _ in range(count):
            found.append(self._text(strings, index, _TYPE_MAX + 1))
            index += len(found[-1]) + 1
        return tuple(found)

    def _words(self, section: _Section | None, first: int, count: int) -> tuple[int, ...]:
        if not count:
            return ()
        if section is None or section.entry != 4 or (first + count) * 4 > section.size:
            raise HelperDofError("offsets outside of their section")
        return struct.unpack_from(f"<{count}I", self._data, section.offset + 4 * first)

    def probes(self) -> list[HelperProbe]:
        """Return the probes of every provider section."""
        return [
            probe for section in self._sections if section.kind == _PROVIDERS for probe in self._of_provider(section)
        ]

    def _of_provider(self, section: _Section) -> list[HelperProbe]:
        fields = _PROVIDER.unpack_from(self._data, section.offset)
        strings, table = self._section(fields[0], _STRTAB), self._section(fields[1], _PROBES)
        arguments, offsets = self._section(fields[2], _PRARGS), self._section(fields[3], _PROFFS)
        questions = None
        if section.size > _PROVIDER.size:
            link = int.from_bytes(self._data[section.offset + _PROVIDER.size :][:4], "little")
            questions = self._section(link, _PRENOFFS) if link else None
        name = self._text(strings, fields[4], _NAME_MAX)
        if table.entry < _PROBE.size or table.entry % 8:
            raise HelperDofError("probes of the wrong size")
        found = []
        for at in range(table.offset, table.offset + table.size, table.entry):
            (address, function, probe, native, translated, mapping, first, nargs, nxargs, count, first_question,
             count_questions, _pad, _pad2) = _PROBE.unpack_from(self._data, at)  # fmt: skip
            if not count + count_questions:
                raise HelperDofError("a probe without a place")
            if mapping + nxargs > arguments.size:
                raise HelperDofError("an argument mapping outside of its section")
            mapped = tuple(self._data[arguments.offset + mapping :][:nxargs])
            if any(one >= nargs for one in mapped):
                raise HelperDofError("an argument mapping to an argument that is not there")
            found.append(
                HelperProbe(
                    name,
                    self._text(strings, function, _FUNCTION_MAX),
                    self._text(strings, probe, _NAME_MAX),
                    address & self._mask,
                    tuple(address + offset & self._mask for offset in self._words(offsets, first, count)),
                    tuple(
                        address + offset & self._mask
                        for offset in self._words(questions, first_question, count_questions)
                    ),
                    self._types(strings, native, nargs),
                    self._types(strings, translated, nxargs),
                    mapped,
                )
            )
        return found
