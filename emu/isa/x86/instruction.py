"""The instructions of x86, in both modes: fields, lengths, events, repetition, LOCK.

A LOCK prefix makes most instructions undefined.  That is how FBT on i386 gets its trap without
int3: 0xf0 over `push ebp` leaves a LOCK before `mov ebp, esp`, which cannot be locked, so the CPU
raises #UD.  Unicorn's decoder skips the prefix instead (QEMU 5 tests it for a few instructions
only), so the engine asks here.

Source: Intel SDM volume 2; FreeBSD sys/cddl/dev/fbt/x86/fbt_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from emu.isa.base import Events, Repetition
from emu.isa.disassembly import (
    CS_ARCH_X86,
    CS_GRP_CALL,
    CS_GRP_JUMP,
    CS_GRP_RET,
    CS_MODE_32,
    CS_MODE_64,
    CS_OP_MEM,
    decoder,
)
from emu.isa.x86.length import PREFIXES, SEGMENTS, Parts, find_layout, find_length, find_lengths, find_prefixes
from emu.support.immutable import immutable

REGISTERS: Final = (
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip


@immutable
class Mode:
    """The register names of an instruction set, and the size of its words."""

    capstone: int
    registers: tuple[str, ...]
    """By number."""
    pc: str
    sp: str
    fp: str
    count: str
    word: int

    @property
    def mask(self) -> int:
        """All the bits of a word."""
        return (1 << 8 * self.word) - 1


LONG_MODE: Final = Mode(CS_MODE_64, REGISTERS, "rip", "rsp", "rbp", "rcx", 8)
_I386: Final = ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi")
PROTECTED_MODE: Final = Mode(CS_MODE_32, _I386, "eip", "esp", "ebp", "ecx", 4)


def instruction_length(code: bytes, mode: Mode = LONG_MODE) -> int:
    """Return the length in bytes of the first instruction; 0: there is none, or a part of one."""
    return find_length(code, long=mode is LONG_MODE)


@lru_cache(1 << 13)
def instruction_lengths(code: bytes, mode: Mode = LONG_MODE) -> tuple[int, ...]:
    """Return the length of each instruction, up to the first bytes that are none."""
    return find_lengths(code, long=mode is LONG_MODE)


# Bytes of SIB and displacement.
_MOST_ADDRESS: Final = 5
_NEAR_BRANCHES: Final = frozenset({*range(0x70, 0x80), 0xC2, 0xC3, *range(0xE0, 0xE4), 0xE8, 0xE9, 0xEB})
_OPERAND_SIZE: Final = 0x66
_REX_W: Final = 8


@immutable
class Instruction:
    """A decoded instruction, with the fields that the rules use."""

    data: bytes
    prefixes: frozenset[int]
    segments: tuple[str, ...]
    """The segments that its prefixes name, in their order."""
    layout: Parts
    mode: Mode = LONG_MODE
    following: bytes = b""
    """The bytes behind it: some systems take an instruction for longer than it is."""

    @property
    def at(self) -> int:
        """Offset of the opcode, or of VEX, EVEX or XOP."""
        return self.layout.start

    @property
    def rex_at(self) -> int:
        """Offset of the REX prefix, -1 for none."""
        return self.layout.rex

    @property
    def rex(self) -> int:
        """Return the REX prefix, 0 for none."""
        return self.data[self.rex_at] if self.rex_at >= 0 else 0

    @property
    def segment(self) -> str:
        """Return the segment that it names, "" for none."""
        return self.segments[-1] if self.segments else ""

    @property
    def second(self) -> int:
        """Return the byte behind the first one of the opcode, 0 if there is none."""
        return self.data[self.at + 1] if self.at + 1 < self.length else 0

    @property
    def extension(self) -> int:
        """Return the reg field of the ModRM byte behind an opcode of one byte."""
        return self.second >> 3 & 7

    @property
    def opcode(self) -> int:
        """Return the first byte of the opcode."""
        return self.data[self.at]

    @property
    def length(self) -> int:
        """Return its bytes."""
        return len(self.data)

    def signed(self, offset: int, size: int) -> int:
        """Return bytes as a two's complement number."""
        return int.from_bytes(self.data[offset : offset + size], "little", signed=True)

    @property
    def lengthened(self) -> Instruction:
        """Return the instruction as a system sees it that does not ask where it ends."""
        return replace(self, data=self.data + self.following.ljust(_MOST_ADDRESS, b"\0"))

    @property
    def wide(self) -> bool:
        """Whether REX.W makes its operands 64 bits wide, whatever other prefixes say."""
        return bool(self.rex & _REX_W)

    @property
    def narrow(self) -> bool:
        """Whether a prefix makes its operands 16 bits wide."""
        return _OPERAND_SIZE in self.prefixes and not self.wide

    @property
    def is_near_branch(self) -> bool:
        """Whether it goes elsewhere in the same code segment: jumps, calls, loops and returns."""
        if self.opcode == 0x0F:
            return self.second >> 4 == 8
        return self.opcode in _NEAR_BRANCHES or (self.opcode == 0xFF and self.extension in {2, 4})

    @property
    def is_conditional(self) -> bool:
        """Whether it is a conditional jump, short or near."""
        return self.opcode >> 4 == 7 or (self.opcode == 0x0F and self.second >> 4 == 8)

    @property
    def vector_at(self) -> int | None:
        """Offset of the opcode behind VEX, EVEX or XOP.

        None for an instruction that begins with neither.
        """
        return self.layout.vector if self.layout.vector >= 0 else None

    @property
    def modrm_at(self) -> int | None:
        """Offset of the ModRM byte; None if there is none."""
        return self.layout.modrm if self.layout.modrm >= 0 else None

    @property
    def refuses_lock(self) -> bool:
        """Whether it has a LOCK prefix and cannot be locked: the CPU raises #UD."""
        if LOCK not in self.prefixes:
            return False
        at, escape = self.modrm_at, self.opcode == 0x0F
        opcode = self.second if escape else self.opcode
        return at is None or self.vector_at is not None or not lockable(opcode, lambda: self.data[at], escape=escape)

    @property
    def relative_at(self) -> int | None:
        """Offset of the ModRM byte if it names an operand relative to rip; None otherwise."""
        at = self.modrm_at if self.mode is LONG_MODE else None
        if at is None or self.data[at] & 0xC7 != 0x05 or self._moves_control_register:
            return None
        return at

    @property
    def _moves_control_register(self) -> bool:
        """Whether it moves a control or debug register: rm is a register whatever mod is."""
        return self.opcode == 0x0F and self.data[self.at + 1] >> 2 == 0x20 >> 2


def take_apart(data: bytes, mode: Mode = LONG_MODE, length: int = 0, layout: Parts | None = None) -> Instruction | None:
    """Find prefixes and opcode; None: the bytes are not an instruction.

    `length` and `layout` are those that another decoder has found.  A REX that is not the last
    prefix is void.
    """
    long = mode is LONG_MODE
    layout = layout or find_layout(data, long=long)
    if layout is None:
        if not length:
            return None
        prefixes = find_prefixes(data[:length] + b"\0", long=long)
        layout = Parts(length, prefixes.end, prefixes.rex)
    length = length or layout.length
    before = data[: layout.start]
    segments = tuple(SEGMENTS[byte] for byte in before if byte in SEGMENTS)
    seen = PREFIXES.intersection(before)
    return Instruction(data[:length], seen, segments, layout, mode, data[length:])


_RETURN_PREFIXES: Final = (b"\xf2", b"\xf3")  # bnd ret, repz ret
# Bytes of call near, indirect, by its addressing: register or memory, with SIB and displacement.
_INDIRECT_CALLS: Final = (2, 3, 4, 6, 7)


def taken_by_return(code: bytes) -> int | None:
    """Return how many bytes of arguments a return instruction takes off; None: it is another one."""
    code = code[1:] if code.startswith(_RETURN_PREFIXES) else code
    if code.startswith(b"\xc3"):
        return 0
    return int.from_bytes(code[1:3], "little") if code.startswith(b"\xc2") else None


def ends_with_call(code: bytes) -> bool:
    """Return whether a call can end these bytes, of which there are 7 or more."""
    if code[-5] == 0xE8:
        return True
    return any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 for size in _INDIRECT_CALLS)


LOCK: Final = 0xF0
_OTHER_PREFIXES: Final = PREFIXES - {LOCK}
# add, or, adc, sbb, and, sub, xor with a register as the source; not cmp.
_ARITHMETIC: Final = frozenset({row + low for row in range(0x00, 0x38, 8) for low in (0, 1)})
_IMMEDIATE: Final = frozenset({0x80, 0x81, 0x83})
# Opcode -> what may be in the reg field of the ModRM byte.
_LOCKABLE: Final = {
    **dict.fromkeys(_ARITHMETIC, range(8)),
    **dict.fromkeys(_IMMEDIATE, range(7)),
    **dict.fromkeys((0x86, 0x87), range(8)),  # xchg
    **dict.fromkeys((0xF6, 0xF7), range(2, 4)),  # not, neg
    **dict.fromkeys((0xFE, 0xFF), range(2)),  # inc, dec
}
_LOCKABLE_0F: Final = {
    **dict.fromkeys((0xB0, 0xB1, 0xC0, 0xC1), range(8)),  # cmpxchg, xadd
    **dict.fromkeys((0xAB, 0xB3, 0xBB), range(8)),  # bts, btr, btc
    0xBA: range(5, 8),  # the same with an immediate
    0xC7: range(1, 2),  # cmpxchg8b
}


def refused(code: bytes) -> bool:
    """Return whether these bytes start with a LOCK prefix that the CPU refuses (#UD)."""
    if not code or code[0] != LOCK:
        return False
    at = 1
    while at < len(code) and code[at] in _OTHER_PREFIXES:
        at += 1
    rest = code[at : at + 3]
    escape = rest[:1] == b"\x0f"
    opcode, modrm = rest[escape : escape + 1], rest[escape + 1 : escape + 2]
    return not modrm or not lockable(opcode[0], lambda: modrm[0], escape=escape)


def lockable(opcode: int, modrm: Callable[[], int], *, escape: bool) -> bool:
    """Return whether an instruction may have a LOCK prefix.

    `escape`: 0f precedes its opcode; `modrm()` reads the byte behind it, and is not called for
    an opcode that cannot be locked.
    """
    fields = (_LOCKABLE_0F if escape else _LOCKABLE).get(opcode)
    if fields is None:
        return False
    byte = modrm()
    return byte >> 6 != 3 and byte >> 3 & 7 in fields


_REPNE, _REP = 0xF2, 0xF3
_ADDRESS_SIZE: Final = 0x67
# ins, outs, movs, cmps, stos, lods, scas.
_STRING: Final = frozenset((*range(0x6C, 0x70), 0xA4, 0xA5, 0xA6, 0xA7, *range(0xAA, 0xB0)))
# cmps and scas, which repeat while the elements are equal (repe), or are not (repne).
_COMPARING: Final = frozenset((0xA6, 0xA7, 0xAE, 0xAF))
_EQUAL, _NOT_EQUAL = 4, 5
_REX: Final = 0x40


def repetition_in_protected_mode(code: bytes) -> Repetition | None:
    """Return how the string instruction repeats that begins these bytes; None: it does not."""
    return _repetition(code, _prefix_count(code), 32)


def repetition_in_long_mode(code: bytes) -> Repetition | None:
    """Return how a string instruction of 64-bit code repeats, where REX may be the last prefix."""
    at = _prefix_count(code)
    return _repetition(code, at + (at < len(code) and code[at] & 0xF0 == _REX), 64)


def _prefix_count(code: bytes) -> int:
    """Return how many prefixes begin the code, without REX."""
    at = 0
    while at < len(code) and code[at] in PREFIXES:
        at += 1
    return at


def _repetition(code: bytes, at: int, bits: int) -> Repetition | None:
    """Return how an instruction repeats: the offset of its opcode, the bits of its addresses."""
    prefixes = code[:at]
    if at >= len(code) or code[at] not in _STRING or (_REPNE not in prefixes and _REP not in prefixes):
        return None
    mask = (1 << (bits // 2 if _ADDRESS_SIZE in prefixes else bits)) - 1
    if code[at] not in _COMPARING:
        return Repetition(mask)
    # Unicorn lets repne win where both prefixes are given.
    return Repetition(mask, _NOT_EQUAL if _REPNE in prefixes else _EQUAL)


_LOAD, _STORE, _BRANCH = Events.LOAD, Events.STORE, Events.BRANCH
_TRANSFERS: Final = (CS_GRP_JUMP, CS_GRP_CALL, CS_GRP_RET)
# Instructions that name memory without an access to it.
_ADDRESSES: Final = ("lea", "nop", "prefetch", "invlpg", "clflush", "cldemote", "endbr")
# The access to the stack that a name implies.
_STACK: Final = {
    "push": _STORE,
    "call": _STORE,
    "pop": _LOAD,
    "ret": _LOAD,
    "leave": _LOAD,
    "enter": _STORE,
    "iret": _LOAD,
}


@lru_cache(1 << 13)
def events(code: bytes, mode: int) -> Events:
    """Return the events of the instruction that starts these bytes."""
    insn: Any = next(decoder((CS_ARCH_X86, mode), detail=True).disasm(code[:15], 0, 1), None)
    if insn is None:
        return Events(0)
    name = insn.mnemonic.split()[-1]
    found = _BRANCH if any(map(insn.group, _TRANSFERS)) else Events(0)
    for prefix, implied in _STACK.items():
        if name.startswith(prefix):
            found |= implied
    if not name.startswith(_ADDRESSES):
        for operand in insn.operands:
            if operand.type == CS_OP_MEM:
                found |= _STORE if name.startswith("set") else Events(operand.access & (_LOAD | _STORE))
    return found
