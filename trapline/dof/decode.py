"""DOF to programs, with every check of the kernel.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/common/dtrace/dtrace.c (dtrace_dof_ecbdesc,
dtrace_dof_actdesc, dtrace_dof_difo, dtrace_dof_options).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

from emu.support.immutable import immutable
from providers.dof.layout import LINK, MAX_SIZE, SectionType
from providers.dof.sections import DofSection, DofSections
from trapline.dof.layout import ACTION, ECB, FORMS, NONE, OPTION, OPTIONS, PROBE, TYPE, VARIABLE
from trapline.framework.base.dynvars import STRING_SIZE
from trapline.framework.base.program import (
    ActionDescription,
    ActionKind,
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


@immutable
class Decoded:
    """The contents of DOF for the framework."""

    ecbs: tuple[EcbDescription, ...]
    options: tuple[tuple[str, int], ...] = ()


def decode(data: bytes, max_size: int = MAX_SIZE) -> Decoded:
    """Read DOF.  Raises `DofError`."""
    return _Decoder(DofSections(data, defines_probes=False, max_size=max_size)).decode()


class _Decoder:
    def __init__(self, sections: DofSections) -> None:
        self._sections = sections
        self._data = sections.data
        self._difos: dict[int, Difo] = {}

    def decode(self) -> Decoded:
        # User relocations have no use in this machine.
        self._sections.relocations()
        ecbs = tuple(map(self._ecb, self._sections.of_type(SectionType.ECBDESC)))
        tables = self._sections.of_type(SectionType.OPTDESC)
        return Decoded(ecbs, tuple(option for one in tables for option in self._options(one)))

    def _section(self, index: int, type_: SectionType, user: DofSection) -> DofSection:
        return self._sections.named(index, user, type_)

    def _string(self, table: DofSection, offset: int, user: DofSection) -> str:
        return self._sections.string(table, offset, user)

    # -- contents of sections

    def _options(self, section: DofSection) -> Iterator[tuple[str, int]]:
        if section.entry < OPTION.size or section.alignment != FORMS[SectionType.OPTDESC].alignment:
            section.bad("bad entry size or alignment of options")
        for at in range(section.offset, section.offset + section.size - OPTION.size + 1, section.entry):
            number, strtab, value = OPTION.unpack_from(self._data, at)
            if strtab != NONE:
                section.bad("options have no strings")
            if value == _UNSET:
                section.bad("an option is unset")
            if number >= len(OPTIONS):
                section.bad(f"there is no option {number}")
            yield OPTIONS[number], value - (1 << 64) if value >> 63 else value

    def _ecb(self, section: DofSection) -> EcbDescription:
        if section.size < ECB.size or section.alignment != FORMS[SectionType.ECBDESC].alignment:
            section.bad("truncated or misaligned ECB description")
        probes, predicate, actions, _pad, _uarg = ECB.unpack_from(self._data, section.offset)
        probe = self._probe(self._section(probes, SectionType.PROBEDESC, section))
        difo = None
        if predicate != NONE:
            difo = self._difo(self._section(predicate, SectionType.DIFOHDR, section))
        found: tuple[ActionDescription, ...] = ()
        if actions != NONE:
            found = tuple(self._actions(self._section(actions, SectionType.ACTDESC, section)))
        return EcbDescription(probe, difo, found)

    def _probe(self, section: DofSection) -> ProbeDescription:
        if section.alignment != FORMS[SectionType.PROBEDESC].alignment or section.size < PROBE.size:
            section.bad("truncated or misaligned probe description")
        strtab, provider, module, function, name, number = PROBE.unpack_from(self._data, section.offset)
        table = self._section(strtab, SectionType.STRTAB, section)
        texts = [self._string(table, offset, section) for offset in (provider, module, function, name)]
        return ProbeDescription(texts[0], texts[1], texts[2], texts[3], number)

    def _actions(self, section: DofSection) -> Iterator[ActionDescription]:
        if section.alignment != FORMS[SectionType.ACTDESC].alignment or section.entry < ACTION.size:
            section.bad("bad alignment or entry size of actions")
        if section.size % section.entry:
            section.bad("the last action is not whole")
        for at in range(section.offset, section.offset + section.size, section.entry):
            difo, strtab, kind, tuple_size, argument, statement = ACTION.unpack_from(self._data, at)
            if kind not in {*ActionKind}:
                section.bad(f"there is no action {kind:#x}")
            text = ""
            if strtab != NONE:
                text = self._string(self._section(strtab, SectionType.STRTAB, section), argument, section)
                if not text:
                    section.bad("an empty format")
                argument = 0
            body = None if difo == NONE else self._difo(self._section(difo, SectionType.DIFOHDR, section))
            yield ActionDescription(ActionKind(kind), body, argument, text, tuple_size, statement)

    def _difo(self, section: DofSection) -> Difo:
        if section.number in self._difos:
            return self._difos[section.number]
        if section.alignment != FORMS[SectionType.DIFOHDR].alignment or section.size < TYPE.size + LINK.size:
            section.bad("truncated or misaligned DIF object header")
        links = (section.size - TYPE.size) // LINK.size
        parts: dict[SectionType, DofSection] = {}
        total = 0
        for number in range(links):
            (index,) = LINK.unpack_from(self._data, section.offset + TYPE.size + LINK.size * number)
            if index >= len(self._sections.all):
                section.bad(f"it names section {index}, of {len(self._sections.all)}")
            part = self._sections.all[index]
            if part.type not in _PARTS:
                continue  # types and relocations have other readers
            type_ = SectionType(part.type)
            self._section(index, type_, section)
            if type_ in parts:
                section.bad(f"it has two {type_.name}s")
            if part.alignment != FORMS[type_].alignment or part.entry != FORMS[type_].entry:
                part.bad(f"bad alignment or entry size of {type_.name}")
            parts[type_] = part
            total += part.size
        if total > _DIFO_MAX:
            section.bad("the DIF object is too large")
        if SectionType.DIF not in parts:
            section.bad("a DIF object without code")
        made = self._difos[section.number] = self._object(section, parts)
        return made

    def _object(self, section: DofSection, parts: dict[SectionType, DofSection]) -> Difo:
        def table(type_: SectionType) -> bytes:
            part = parts.get(type_)
            return self._sections.bytes_of(part) if part is not None else b""

        code, integers = table(SectionType.DIF), table(SectionType.INTTAB)
        strings = table(SectionType.STRTAB) or b"\0"
        return Difo(
            struct.unpack(f"<{len(code) // 4}I", code[: len(code) // 4 * 4]),
            struct.unpack(f"<{len(integers) // 8}Q", integers[: len(integers) // 8 * 8]),
            strings,
            tuple(self._variables(section, table(SectionType.VARTAB), strings)),
            self._type(section, *TYPE.unpack_from(self._data, section.offset)),
        )

    def _type(self, section: DofSection, kind: int, ckind: int, flags: int, size: int) -> DifType:
        if kind not in {*TypeKind}:
            section.bad(f"there is no kind {kind} of types")
        return DifType(TypeKind(kind), ckind, flags, size)

    def _variables(self, section: DofSection, data: bytes, strings: bytes) -> Iterator[DifVariable]:
        for row in VARIABLE.iter_unpack(data[: len(data) // VARIABLE.size * VARIABLE.size]):
            name, number, kind, scope, flags, *fields = row
            if name >= len(strings) or kind not in {*VariableKind} or scope not in {*Scope}:
                section.bad("an invalid variable")
            type_ = self._type(section, *fields)
            if type_.kind is TypeKind.STRING and not type_.size:
                type_ = DifType(type_.kind, type_.ckind, type_.flags, STRING_SIZE)
            text = strings[name : strings.index(0, name)].decode("utf-8", "surrogateescape")
            yield DifVariable(text, number, VariableKind(kind), Scope(scope), flags, type_)
