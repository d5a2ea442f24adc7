"""The second opinion: capstone, called as a C library.

Its Python classes take 20 µs for an instruction, its C functions a quarter of a microsecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Flag, auto
from functools import cache, cached_property
from typing import Any, Final, NamedTuple

import capstone

from emu.isa import ISAS, disassembly
from emu.support.plain import function_address


class Facts(Flag):
    """The properties of an instruction that matter for code that moves it."""

    NONE = 0
    RELATIVE = auto()
    """An operand is an address relative to the pc, other than the next instruction's."""
    CONTROL = auto()
    """The CPU does not continue at the next instruction; this does not include system calls, which
    return."""

    def __str__(self) -> str:
        return " and ".join(text for fact, text in _FACTS.items() if fact in self) or "neither relative nor a transfer"


_FACTS: Final = {Facts.RELATIVE: "relative to the pc", Facts.CONTROL: "a transfer of control"}
_CONTROL: Final = Facts.CONTROL
_RELATIVE: Final = Facts.RELATIVE
_BOTH: Final = Facts.RELATIVE | Facts.CONTROL

# The text has a memory operand.
BRACKET: Final = 1 << 2
# It is in capstone's groups of jumps, calls and returns.
CONTROL_BIT: Final = 1
# It is in capstone's group of branches relative to the pc.
RELATIVE_BIT: Final = 1 << 1
SIZE_SHIFT: Final = 3
BITS: Final = 5 + SIZE_SHIFT

CONTROL_GROUPS: Final = (capstone.CS_GRP_JUMP, capstone.CS_GRP_CALL, capstone.CS_GRP_RET, capstone.CS_GRP_IRET)
RELATIVE_GROUP: Final = capstone.CS_GRP_BRANCH_RELATIVE

_X86: Final = {
    # Capstone has these only in the group of relative branches.
    "loop": _BOTH,
    "loope": _BOTH,
    "loopne": _BOTH,
}
# Instructions that are missing in capstone's groups, or in a wrong one; their names are correct.
_KNOWN: Final[Mapping[str, Mapping[str, Facts]]] = {
    "aarch64": {
        "adrp": _RELATIVE,
        # Capstone has these in the group of relative branches.
        "blr": _CONTROL,
        "blraa": _CONTROL,
        "blraaz": _CONTROL,
        "blrab": _CONTROL,
        "blrabz": _CONTROL,
        # It has them in no group.
        "bc": _BOTH,
        "eret": _CONTROL,
        "eretaa": _CONTROL,
        "eretab": _CONTROL,
        "drps": _CONTROL,
    },
    "x86_64": _X86,
    "i386": _X86,
    "riscv64": {
        "auipc": _RELATIVE,
        # Capstone has these only in the groups of calls and jumps.
        "jal": _BOTH,
        "c.j": _BOTH,
        "c.jal": _BOTH,
        # It has them in no group.
        "sret": _CONTROL,
        "mret": _CONTROL,
        "uret": _CONTROL,
    },
}
# Instructions that name an address relative to the pc, although the text has no brackets.
_LITERALS: Final = {"aarch64": frozenset({"adr", "ldr", "ldrsw", "prfm"})}


class Decoded(NamedTuple):
    """Capstone's result for an encoding; the name is "" if it does not decode."""

    name: str
    length: int
    facts: Facts

    def differs(self, facts: Facts | None) -> Facts:
        """Return what differs from a table's facts; none if the table or capstone has none."""
        return Facts.NONE if facts is None or not self.name else facts ^ self.facts


NOTHING_DECODED: Final = Decoded("", 0, Facts.NONE)


_LIBRARY: Any = ctypes.CDLL(capstone._cs._name)  # noqa: SLF001  there is no public way to its name
_LIBRARY.cs_malloc.restype = ctypes.c_void_p
_INSN: Any = capstone._cs_insn  # noqa: SLF001
_DETAIL: Any = capstone._cs_detail  # noqa: SLF001


@dataclass(frozen=True, slots=True)
class Layout:
    """Offsets in bytes of the fields of capstone's structures that are read."""

    size: int = _INSN.size.offset
    text: int = _INSN.op_str.offset
    detail: int = _INSN.detail.offset
    groups: int = _DETAIL.groups.offset
    groups_count: int = _DETAIL.groups_count.offset


LAYOUT: Final = Layout()


class Decoder:
    """Capstone for one ISA, one instruction at a time, with its groups."""

    def __init__(self, isa: str) -> None:
        self.isa = isa
        self._cs = disassembly.decoder(ISAS[isa].capstone, detail=True)
        self.handle: int = self._cs.csh.value
        self.instruction: int = _LIBRARY.cs_malloc(self._cs.csh)
        """The result of decoding an instruction: a cs_insn with its cs_detail."""
        self._insn = _INSN.from_address(self.instruction)
        prototype = ctypes.CFUNCTYPE(ctypes.c_bool, *(5 * [ctypes.c_void_p]))
        self.function: int = function_address(_LIBRARY.cs_disasm_iter)
        """Address of cs_disasm_iter."""
        self._decode = prototype(self.function)
        self._known = _KNOWN.get(isa, {})
        self._literals = _LITERALS.get(isa, frozenset())
        self._code, self._left, self._at = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_uint64()
        self._pointers = tuple(ctypes.addressof(value) for value in (self._code, self._left, self._at))

    def decode(self, code: bytes, address: int = 0x1000) -> bool:
        """Decode the instruction that starts `code` into `instruction`.

        Return whether it is one.
        """
        buffer = ctypes.c_char_p(code)
        self._code.value = ctypes.cast(buffer, ctypes.c_void_p).value or 0
        self._left.value, self._at.value = len(code), address
        return bool(self._decode(self.handle, *self._pointers, self.instruction))

    @property
    def text(self) -> str:
        """The instruction that was decoded last."""
        return f"{self._insn.mnemonic.decode()} {self._insn.op_str.decode()}".rstrip()

    @property
    def number(self) -> int:
        """Capstone's number of it."""
        return int(self._insn.id)

    @property
    def length(self) -> int:
        """Its bytes."""
        return int(self._insn.size)

    @property
    def bits(self) -> int:
        """Its other facts, which are stored beside its number (BRACKET and so on)."""
        insn = self._insn
        detail = insn.detail.contents
        bits = insn.size << SIZE_SHIFT | (BRACKET if b"[" in insn.op_str else 0)
        for group in detail.groups[: detail.groups_count]:
            if group in CONTROL_GROUPS:
                bits |= CONTROL_BIT
            elif group == RELATIVE_GROUP:
                bits |= RELATIVE_BIT
        if b"[rip" in insn.op_str or b"[eip" in insn.op_str:
            bits |= RELATIVE_BIT
        return int(bits)

    @cached_property
    def _names(self) -> dict[int, str]:
        return {0: ""}

    def name(self, number: int) -> str:
        """Return capstone's name of an instruction number."""
        names = self._names
        if number not in names:
            names[number] = self._cs.insn_name(number)
        return names[number]

    def facts(self, number: int, bits: int) -> Decoded:
        """Return the facts of a number and its bits."""
        name = self.name(number)
        facts = self._known.get(name)
        if facts is None:
            facts = Facts.NONE
            if bits & CONTROL_BIT:
                facts |= Facts.CONTROL
            if bits & RELATIVE_BIT or (name in self._literals and not bits & BRACKET):
                facts |= Facts.RELATIVE
        return Decoded(name, bits >> SIZE_SHIFT, facts)


@cache
def decoder(isa: str) -> Decoder:
    """Return the decoder of an ISA; one for each process."""
    return Decoder(isa)
