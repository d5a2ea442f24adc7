"""Programs to DOF.

Source: FreeBSD libdtrace dt_dof.c (dtrace_dof_create).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.support.words import WORD_MASK
from providers.dof.layout import (
    DIF_VERSION,
    HEADER,
    LINK,
    LITTLE,
    LOAD,
    MAGIC,
    NOT_LOADED,
    REGISTERS,
    SECTION,
    VERSION,
    SectionType,
)
from trapline.dof.layout import ACTION, ECB, FORMS, NONE, OPTION, OPTIONS, PROBE, TYPE, VARIABLE
from trapline.framework.base.program import (
    ActionDescription,
    DataModel,
    Difo,
    DifType,
    EcbDescription,
    ProbeDescription,
    Program,
)

_COMMENT: Final = b"Trapline D 1.14\0"


def encode(program: Program, options: Mapping[str, int] | None = None) -> bytes:
    """Return a program as DOF, with run-time options by name."""
    return _Encoder(program.model).encode(program, options or {})


class _Encoder:
    def __init__(self, model: DataModel) -> None:
        self._model = model
        self._sections: list[tuple[SectionType, bytes]] = []
        self._strings = bytearray(b"\0")
        self._offsets: dict[str, int] = {"": 0}
        self._difos: dict[Difo, int] = {}
        self._strtab = 0

    def encode(self, program: Program, options: Mapping[str, int]) -> bytes:
        self._add(SectionType.COMMENTS, _COMMENT)
        self._strtab = self._add(SectionType.STRTAB, b"")
        for ecb in program.ecbs:
            self._ecb(ecb)
        if options:
            rows = (OPTION.pack(OPTIONS.index(name), NONE, value & WORD_MASK) for name, value in options.items())
            self._add(SectionType.OPTDESC, b"".join(rows))
        self._sections[self._strtab] = (SectionType.STRTAB, bytes(self._strings))
        return self._file()

    def _add(self, type_: SectionType, data: bytes) -> int:
        self._sections.append((type_, data))
        return len(self._sections) - 1

    def _string(self, text: str) -> int:
        if text not in self._offsets:
            self._offsets[text] = len(self._strings)
            self._strings += text.encode("utf-8", "surrogateescape") + b"\0"
        return self._offsets[text]

    def _ecb(self, ecb: EcbDescription) -> None:
        probes = self._add(SectionType.PROBEDESC, self._probe(ecb.probe))
        predicate = NONE if ecb.predicate is None else self._difo(ecb.predicate)
        rows = [self._action(action) for action in ecb.actions]
        actions = self._add(SectionType.ACTDESC, b"".join(rows)) if rows else NONE
        self._add(SectionType.ECBDESC, ECB.pack(probes, predicate, actions, 0, 0))

    def _probe(self, probe: ProbeDescription) -> bytes:
        names = (probe.provider, probe.module, probe.function, probe.name)
        return PROBE.pack(self._strtab, *map(self._string, names), probe.id)

    def _action(self, action: ActionDescription) -> bytes:
        difo = NONE if action.difo is None else self._difo(action.difo)
        strtab, argument = NONE, action.argument & WORD_MASK
        if action.format:
            strtab, argument = self._strtab, self._string(action.format)
        return ACTION.pack(difo, strtab, action.kind, action.tuple_size, argument, action.statement)

    def _difo(self, difo: Difo) -> int:
        """Add a DIF object, once; return the index of its header."""
        if difo in self._difos:
            return self._difos[difo]
        strings = bytearray(difo.strings)
        variables = b"".join(
            VARIABLE.pack(
                _offset(strings, variable.name), variable.id, variable.kind, variable.scope, variable.flags,
                *_fields(variable.type),
            )
            for variable in difo.variables
        )  # fmt: skip
        parts = [(SectionType.DIF, b"".join(map(LINK.pack, difo.code)))]
        if difo.integers:
            parts.append((SectionType.INTTAB, b"".join(value.to_bytes(8, "little") for value in difo.integers)))
        if len(strings) > 1:
            parts.append((SectionType.STRTAB, bytes(strings)))
        if variables:
            parts.append((SectionType.VARTAB, variables))
        links = [self._add(type_, data) for type_, data in parts]
        header = TYPE.pack(*_fields(difo.returns)) + b"".join(map(LINK.pack, links))
        self._difos[difo] = self._add(SectionType.DIFOHDR, header)
        return self._difos[difo]

    def _file(self) -> bytes:
        """Lay the sections out after the header and their table: first those that are loaded."""
        start = HEADER.size + SECTION.size * len(self._sections)
        placed: dict[int, int] = {}
        body = bytearray()
        loaded = 0
        for load in (True, False):
            for index, (type_, data) in enumerate(self._sections):
                if (type_ not in NOT_LOADED) is load:
                    body += bytes(-(start + len(body)) % max(8, FORMS[type_].alignment))
                    placed[index] = start + len(body)
                    body += data
            loaded = loaded or start + len(body)
        table = b"".join(
            SECTION.pack(
                type_, FORMS[type_].alignment, 0 if type_ in NOT_LOADED else LOAD, FORMS[type_].entry,
                placed[index], len(data),
            )
            for index, (type_, data) in enumerate(self._sections)
        )  # fmt: skip
        ident = MAGIC + bytes((self._model, LITTLE, VERSION, DIF_VERSION, REGISTERS, REGISTERS)) + bytes(6)
        size = start + len(body)
        header = HEADER.pack(ident, 0, HEADER.size, SECTION.size, len(self._sections), HEADER.size, loaded, size, 0)
        return header + table + bytes(body)


def _fields(type_: DifType) -> tuple[int, int, int, int]:
    return type_.kind, type_.ckind, type_.flags, type_.size


def _offset(strings: bytearray, name: str) -> int:
    """Return where a name is in a string table; add it if it is not."""
    data = name.encode("utf-8", "surrogateescape")
    if not data:
        return 0
    at = (b"\0" + bytes(strings)).find(b"\0" + data + b"\0")
    if at < 0:
        at = len(strings)
        strings += data + b"\0"
    return at
