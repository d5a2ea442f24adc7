"""DOF to programs, with every check that the kernel makes before it believes a word of it.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/dtrace.c (dtrace_dof_slurp,
dtrace_dof_ecbdesc, dtrace_dof_actdesc, dtrace_dof_difo, dtrace_dof_options).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, NoReturn

from trapline.dof.layout import (
    ACTION,
    DIF_VERSION,
    ECB,
    FORMS,
    HEADER,
    LINK,
    LITTLE,
    LOAD,
    MAGIC,
    MAX_SIZE,
    NONE,
    NOT_LOADED,
    OF_PROVIDERS,
    OPTION,
    OPTIONS,
    PROBE,
    REGISTERS,
    RELOCATION,
    SECTION,
    TYPE,
    VARIABLE,
    VERSION,
    SectionType,
)
from trapline.framework.dynvars import STRING_SIZE
from trapline.framework.program import (
    ActionDescription,
    ActionKind,
    DataModel,
    Difo,
    DifType,
    DifVariable,
    EcbDescription,
    ProbeDescription,
    Scope,
    TypeKind,
    VariableKind,
)

_UNSET: Final = (1 << 64) - 2
_DIFO_MAX: Final = 256 * 1024
_PARTS: Final = (SectionType.DIF, SectionType.INTTAB, SectionType.STRTAB, SectionType.VARTAB)


class DofError(Exception):
    """DOF that is refused; `errno_name` is what the ioctl returns."""

    def __init__(self, message: str, errno_name: str = "EINVAL") -> None:
        super().__init__(message)
        self.errno_name = errno_name


@dataclass(frozen=True, slots=True)
class Decoded:
    """What DOF says to the framework."""

    ecbs: tuple[EcbDescription, ...]
    options: tuple[tuple[str, int], ...] = ()


class _Section(NamedTuple):
    number: int
    type: int
    alignment: int
    flags: int
    entry: int
    offset: int
    size: int


def decode(data: bytes, max_size: int = MAX_SIZE) -> Decoded:
    """Read DOF.  Raises `DofError`."""
    return _Decoder(data, max_size).decode()


class _Decoder:
    def __init__(self, data: bytes, max_size: int) -> None:
        self._data = data
        self._max_size = max_size
        self._sections: list[_Section] = []
        self._difos: dict[int, Difo] = {}

    def decode(self) -> Decoded:
        self._header()
        for section in self._sections:
            self._check(section)
        for section in self._sections:
            if section.type == SectionType.URELHDR and section.flags & LOAD:
                self._relocate(section)
        wanted = [one for one in self._sections if one.flags & LOAD]
        ecbs = tuple(self._ecb(one) for one in wanted if one.type == SectionType.ECBDESC)
        options = tuple(option for one in wanted if one.type == SectionType.OPTDESC for option in self._options(one))
        return Decoded(ecbs, options)

    # -- the header and the table

    def _header(self) -> None:
        data = self._data
        if len(data) < HEADER.size:
            raise DofError("corrupt DOF header: it is not whole")
        ident, flags, _hdrsize, secsize, secnum, secoff, loadsz, _filesz, _pad = HEADER.unpack_from(data)
        if loadsz >= self._max_size:
            raise DofError(f"load size {loadsz:#x} exceeds the maximum of {self._max_size:#x}", "E2BIG")
        if loadsz < HEADER.size or loadsz > len(data):
            raise DofError("corrupt DOF header: the load size is not that of the data")
        _check_ident(ident)
        if flags:
            raise DofError(f"invalid DOF flags {flags:#x}")
        if not secsize:
            raise DofError("zero section header size")
        if secoff & 7 or secoff > loadsz or secsize & 7 or secoff + secsize * secnum > loadsz:
            raise DofError("section headers are misaligned or beyond the end")
        if secsize < SECTION.size and secnum:
            raise DofError("section headers are too short")
        self._data = data[:loadsz]
        for index in range(secnum):
            self._sections.append(_Section(index, *SECTION.unpack_from(data, secoff + index * secsize)))

    def _check(self, section: _Section) -> None:
        """Check a section's header (the first pass)."""
        if section.type in OF_PROVIDERS:
            self._bad(section, "a program that enables probes cannot define any")
        if section.type in {*SectionType} - NOT_LOADED - {SectionType.NONE} and not section.flags & LOAD:
            self._bad(section, "it is of a loadable kind, but not to be loaded")
        if not section.flags & LOAD:
            return
        if not section.alignment or section.alignment & (section.alignment - 1):
            self._bad(section, f"an alignment of {section.alignment}")
        if section.offset & (section.alignment - 1):
            self._bad(section, f"it is not aligned by {section.alignment}")
        if section.offset + section.size > len(self._data):
            self._bad(section, "it ends beyond what is loaded")
        if section.type == SectionType.STRTAB and (not section.size or self._bytes(section)[-1]):
            self._bad(section, "a string table that ends without a NUL")

    def _bad(self, section: _Section, why: str) -> NoReturn:
        raise DofError(f"section {section.number}: {why}")

    def _bytes(self, section: _Section) -> bytes:
        return self._data[section.offset : section.offset + section.size]

    def _section(self, index: int, type_: SectionType, user: _Section) -> _Section:
        """Return a section that another names."""
        if index >= len(self._sections):
            self._bad(user, f"it names section {index}, of {len(self._sections)}")
        found = self._sections[index]
        if not found.flags & LOAD:
            self._bad(user, f"it names section {index}, which is not loaded")
        if found.type != type_:
            self._bad(user, f"it names section {index}, which is no {type_.name}")
        return found

    def _string(self, table: _Section, offset: int, user: _Section) -> str:
        data = self._bytes(table)
        if offset >= len(data):
            self._bad(user, f"a string at {offset:#x} of {len(data):#x}")
        return data[offset : data.index(0, offset)].decode("utf-8", "surrogateescape")

    # -- what sections hold

    def _relocate(self, section: _Section) -> None:
        """Check a relocation header; there is nothing that user relocations could be for in this machine."""
        if section.size < RELOCATION.size or section.alignment != 4:
            self._bad(section, "invalid relocation header")
        strtab, relsec, tgtsec = RELOCATION.unpack_from(self._data, section.offset)
        self._section(strtab, SectionType.STRTAB, section)
        table = self._section(relsec, SectionType.RELTAB, section)
        if tgtsec >= len(self._sections) or table.entry < 24 or table.alignment != 8:
            self._bad(section, "invalid relocations")

    def _options(self, section: _Section) -> Iterator[tuple[str, int]]:
        if section.entry < OPTION.size or section.alignment != FORMS[SectionType.OPTDESC].alignment:
            self._bad(section, "bad entry size or alignment of options")
        for at in range(section.offset, section.offset + section.size - OPTION.size + 1, section.entry):
            number, strtab, value = OPTION.unpack_from(self._data, at)
            if strtab != NONE:
                self._bad(section, "options have no strings")
            if value == _UNSET:
                self._bad(section, "an option is unset")
            if number >= len(OPTIONS):
                self._bad(section, f"there is no option {number}")
            yield OPTIONS[number], value - (1 << 64) if value >> 63 else value

    def _ecb(self, section: _Section) -> EcbDescription:
        if section.size < ECB.size or section.alignment != FORMS[SectionType.ECBDESC].alignment:
            self._bad(section, "truncated or misaligned ECB description")
        probes, predicate, actions, _pad, _uarg = ECB.unpack_from(self._data, section.offset)
        probe = self._probe(self._section(probes, SectionType.PROBEDESC, section))
        difo = None
        if predicate != NONE:
            difo = self._difo(self._section(predicate, SectionType.DIFOHDR, section))
        found: tuple[ActionDescription, ...] = ()
        if actions != NONE:
            found = tuple(self._actions(self._section(actions, SectionType.ACTDESC, section)))
        return EcbDescription(probe, difo, found)

    def _probe(self, section: _Section) -> ProbeDescription:
        if section.alignment != FORMS[SectionType.PROBEDESC].alignment or section.size < PROBE.size:
            self._bad(section, "truncated or misaligned probe description")
        strtab, provider, module, function, name, number = PROBE.unpack_from(self._data, section.offset)
        table = self._section(strtab, SectionType.STRTAB, section)
        texts = [self._string(table, offset, section) for offset in (provider, module, function, name)]
        return ProbeDescription(texts[0], texts[1], texts[2], texts[3], number)

    def _actions(self, section: _Section) -> Iterator[ActionDescription]:
        if section.alignment != FORMS[SectionType.ACTDESC].alignment or section.entry < ACTION.size:
            self._bad(section, "bad alignment or entry size of actions")
        if section.size % section.entry:
            self._bad(section, "the last action is not whole")
        for at in range(section.offset, section.offset + section.size, section.entry):
            difo, strtab, kind, tuple_size, argument, statement = ACTION.unpack_from(self._data, at)
            if kind not in {*ActionKind}:
                self._bad(section, f"there is no action {kind:#x}")
            text = ""
            if strtab != NONE:
                text = self._string(self._section(strtab, SectionType.STRTAB, section), argument, section)
                if not text:
                    self._bad(section, "an empty format")
                argument = 0
            body = None if difo == NONE else self._difo(self._section(difo, SectionType.DIFOHDR, section))
            yield ActionDescription(ActionKind(kind), body, argument, text, tuple_size, statement)

    def _difo(self, section: _Section) -> Difo:
        if section.number in self._difos:
            return self._difos[section.number]
        if section.alignment != FORMS[SectionType.DIFOHDR].alignment or section.size < TYPE.size + LINK.size:
            self._bad(section, "truncated or misaligned DIF object header")
        links = (section.size - TYPE.size) // LINK.size
        parts: dict[SectionType, _Section] = {}
        total = 0
        for number in range(links):
            (index,) = LINK.unpack_from(self._data, section.offset + TYPE.size + LINK.size * number)
            if index >= len(self._sections):
                self._bad(section, f"it names section {index}, of {len(self._sections)}")
            part = self._sections[index]
            if part.type not in _PARTS:
                continue  # types and relocations are for others
            type_ = SectionType(part.type)
            self._section(index, type_, section)
            if type_ in parts:
                self._bad(section, f"it has two {type_.name}s")
            if part.alignment != FORMS[type_].alignment or part.entry != FORMS[type_].entry:
                self._bad(part, f"bad alignment or entry size of {type_.name}")
            parts[type_] = part
            total += part.size
        if total > _DIFO_MAX:
            self._bad(section, "the DIF object is too large")
        if SectionType.DIF not in parts:
            self._bad(section, "a DIF object without code")
        made = self._difos[section.number] = self._object(section, parts)
        return made

    def _object(self, section: _Section, parts: dict[SectionType, _Section]) -> Difo:
        def table(type_: SectionType) -> bytes:
            part = parts.get(type_)
            return self._bytes(part) if part is not None else b""

        code, integers = table(SectionType.DIF), table(SectionType.INTTAB)
        strings = table(SectionType.STRTAB) or b"\0"
        return Difo(
            struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4]),
            struct.unpack(f"<{len(integers) // 8}Q", integers[: len(integers) // 8 * 8]),
            strings,
            tuple(self._variables(section, table(SectionType.VARTAB), strings)),
            self._type(section, *TYPE.unpack_from(self._data, section.offset)),
        )

    def _type(self, section: _Section, kind: int, ckind: int, flags: int, size: int) -> DifType:
        if kind not in {*TypeKind}:
            self._bad(section, f"there is no kind {kind} of types")
        return DifType(TypeKind(kind), ckind, flags, size)

    def _variables(self, section: _Section, data: bytes, strings: bytes) -> Iterator[DifVariable]:
        for row in VARIABLE.iter_unpack(data[: len(data) // VARIABLE.size * VARIABLE.size]):
            name, number, kind, scope, flags, *fields = row
            if name >= len(strings) or kind not in {*VariableKind} or scope not in {*Scope}:
                self._bad(section, "an invalid variable")
            type_ = self._type(section, *fields)
            if type_.kind is TypeKind.STRING and not type_.size:
                type_ = DifType(type_.kind, type_.ckind, type_.flags, STRING_SIZE)
            text = strings[name : strings.index(0, name)].decode("utf-8", "surrogateescape")
            yield DifVariable(text, number, VariableKind(kind), Scope(scope), flags, type_)


def _check_ident(ident: bytes) -> None:
    if ident[:4] != MAGIC:
        raise DofError("DOF magic string mismatch")
    checks = (
        (ident[4] in {*DataModel}, "DOF has an invalid data model"),
        (ident[5] == LITTLE, "DOF encoding mismatch"),
        (ident[6] in {1, VERSION}, "DOF version mismatch"),
        (ident[7] == DIF_VERSION, "DOF uses an unsupported instruction set"),
        (ident[8] <= REGISTERS, "DOF uses too many integer registers"),
        (ident[9] <= REGISTERS, "DOF uses too many tuple registers"),
        (not any(ident[10:]), "DOF has invalid ident bytes set"),
    )
    for good, message in checks:
        if not good:
            raise DofError(message)
