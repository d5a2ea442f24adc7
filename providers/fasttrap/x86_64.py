"""Fasttrap on x86-64.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c (what becomes of an instruction),
cddl/contrib/opensolaris/lib/libdtrace/i386/dt_isadep.c (where functions return).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from emu.displaced import Branch, Clear, Compare, Load, Operation, Plan, Set, Store, Sum, Test
from emu.isa.x86_64.length import instruction_length, instruction_lengths
from providers.fasttrap.port import Code, Emulated, Fidelity, OutOfLine, Port, Refused, Treatment

_ISA: Final = "FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c"
_OURS: Final = "this simulator: it would compute something else"

_REGISTERS: Final = (
    "rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
)  # fmt: skip
_SEGMENTS: Final = {0x26: "es", 0x2E: "cs", 0x36: "ss", 0x3E: "ds", 0x64: "fs", 0x65: "gs"}
_PREFIXES: Final = frozenset({*_SEGMENTS, 0x66, 0x67, 0xF0, 0xF2, 0xF3})
_LOW_HALF: Final = 0xFFFF_FFFF_0000_0000
_INT3: Final = 0xCC
_INT: Final = 0xCD
_T_DTRACE_RET: Final = 32
"""FreeBSD sys/x86/include/trap.h."""
_JUMP: Final = bytes.fromhex("ff2500000000")
"""jmp *0(%rip): to the address that follows."""
_MAPS_WITH_MODRM_0F: Final = frozenset(
    {*range(0x04), *range(0x10, 0x30), *range(0x40, 0x80), *range(0x90, 0xA0), 0xA3, 0xA4, 0xA5, 0xAB, 0xAC, 0xAD,
     0xAE, 0xAF, *range(0xB0, 0xC8), *range(0xD0, 0x100), 0x0D, 0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F}
)  # fmt: skip
_MODRM: Final = frozenset(
    {*(row + low for row in range(0x00, 0x40, 8) for low in range(4)), 0x62, 0x63, 0x69, 0x6B, *range(0x80, 0x90),
     0xC0, 0xC1, 0xC6, 0xC7, 0xD0, 0xD1, 0xD2, 0xD3, *range(0xD8, 0xE0), 0xF6, 0xF7, 0xFE, 0xFF}
)  # fmt: skip
"""One-byte opcodes with a ModRM byte (Intel SDM volume 2, appendix A)."""


@dataclass(frozen=True, slots=True)
class _Instruction:
    """An instruction taken apart as far as the rules look."""

    data: bytes
    prefixes: frozenset[int]
    segment: str
    rex: int
    rex_at: int
    """Offset of the REX prefix, -1 for none."""
    at: int
    """Offset of the opcode."""

    @property
    def opcode(self) -> int:
        return self.data[self.at]

    @property
    def length(self) -> int:
        return len(self.data)

    def signed(self, offset: int, size: int) -> int:
        return int.from_bytes(self.data[offset : offset + size], "little", signed=True)

    @property
    def modrm_at(self) -> int | None:
        """Offset of the ModRM byte; None if there is none, or the opcode is one of VEX or EVEX."""
        if self.opcode in {0xC4, 0xC5, 0x62}:
            return None
        if self.opcode != 0x0F:
            return self.at + 1 if self.opcode in _MODRM else None
        second = self.data[self.at + 1]
        if second in {0x38, 0x3A}:
            return self.at + 3
        return self.at + 2 if second in _MAPS_WITH_MODRM_0F else None


def _take_apart(data: bytes) -> _Instruction | str:
    """Find prefixes and opcode; a text says why that fails."""
    length = instruction_length(data)
    if not length:
        return "the bytes are no instruction"
    data = data[:length]
    at, segment = 0, ""
    prefixes = set()
    while data[at] in _PREFIXES:
        if data[at] in _SEGMENTS:
            if segment:
                return "it has two segment prefixes"
            segment = _SEGMENTS[data[at]]
        prefixes.add(data[at])
        at += 1
    rex, rex_at = 0, -1
    if data[at] >> 4 == 4:
        rex, rex_at = data[at], at
        at += 1
    return _Instruction(data, frozenset(prefixes), segment, rex, rex_at, at)


# Plans


def _branch(tests: tuple[Test, ...], taken: int, missed: int, *before: Operation) -> Plan:
    return Plan((*before, Branch(tests, taken, missed)))


def _condition(number: int) -> Test:
    return Test(Compare.FLAGS, right=number)


def _jcc(insn: _Instruction) -> Plan:
    if insn.opcode == 0x0F:
        number, displacement = insn.data[insn.at + 1] & 15, insn.signed(insn.at + 2, 4)
    else:
        number, displacement = insn.opcode & 15, insn.signed(insn.at + 1, 1)
    return _branch((_condition(number),), insn.length + displacement, insn.length)


def _loop(insn: _Instruction, fidelity: Fidelity) -> Plan:
    extra = {0xE0: (_condition(5),), 0xE1: (_condition(4),), 0xE2: ()}[insn.opcode]
    taken = insn.length + insn.signed(insn.at + 1, 1)
    if fidelity is Fidelity.FREEBSD:
        # fasttrap_isa.c tests the count before it decrements it, and knows no address-size prefix.
        before = (Set("%0", "rcx"), Set("rcx", "rcx", -1))
        return _branch((Test(Compare.NE, "%0", 0), *extra), taken, insn.length, *before)
    count = Clear("rcx", "%0", _LOW_HALF) if 0x67 in insn.prefixes else Set("rcx", "%0")
    test = Test(Compare.NE, "rcx", 0)
    return _branch((test, *extra), taken, insn.length, Set("%0", "rcx", -1), count)


def _jcxz(insn: _Instruction, fidelity: Fidelity) -> Plan:
    bits = 32 if 0x67 in insn.prefixes and fidelity is Fidelity.EXACT else 64
    test = Test(Compare.EQ, "rcx", 0, bits)
    return _branch((test,), insn.length + insn.signed(insn.at + 1, 1), insn.length)


def _transfer(insn: _Instruction, *before: Operation, call: bool, target: str = "", offset: int = 0) -> Plan:
    """Jump to `target`, or by `offset` if it is the pc; a call leaves the address after the original."""
    push = (Set("%0", "rip", insn.length), Store("%0", "rsp", -8), Set("rsp", "rsp", -8)) if call else ()
    return Plan((*before, *push, Set("rip", target or "rip", offset)))


def _indirect(insn: _Instruction, *, call: bool) -> Plan:
    modrm = insn.data[insn.at + 1]
    mod, rm = modrm >> 6, modrm & 7
    if mod == 3:
        register = _REGISTERS[rm | (insn.rex & 1) << 3]
        return _transfer(insn, Set("%2", register), call=call, target="%2")
    base, index, shift, displacement, at = "", "", 0, 0, insn.at + 2
    if rm == 4:
        sib = insn.data[at]
        at += 1
        scaled = sib >> 3 & 7 | (insn.rex & 2) << 2
        index, shift = ("" if scaled == 4 else _REGISTERS[scaled]), sib >> 6
        if sib & 7 == 5 and mod == 0:
            displacement = insn.signed(at, 4)
        else:
            base = _REGISTERS[sib & 7 | (insn.rex & 1) << 3]
    elif rm == 5 and mod == 0:
        base, displacement = "rip", insn.signed(at, 4) + insn.length
    else:
        base = _REGISTERS[rm | (insn.rex & 1) << 3]
    if mod:
        displacement = insn.signed(at, 1 if mod == 1 else 4)
    address: list[Operation] = [Sum("%1", base, index, shift, displacement)]
    if 0x67 in insn.prefixes:
        address.append(Clear("%1", "%1", _LOW_HALF))
    if insn.segment in {"fs", "gs"}:
        address.append(Sum("%1", "%1", f"{insn.segment}_base"))
    return _transfer(insn, *address, Load("%2", "%1"), call=call, target="%2")


def _push_rbp(_insn: _Instruction) -> Plan:
    return Plan((Store("rbp", "rsp", -8), Set("rsp", "rsp", -8), Set("rip", "rip", 1)))


def _ret(insn: _Instruction) -> Plan:
    popped = 8 + (int.from_bytes(insn.data[insn.at + 1 : insn.at + 3], "little") if insn.opcode == 0xC2 else 0)
    return Plan((Load("%0", "rsp"), Set("rsp", "rsp", popped), Set("rip", "%0")))


def _treat(code: Code, fidelity: Fidelity) -> Treatment:
    """Decide about an instruction (fasttrap_tracepoint_init)."""
    insn = _take_apart(code.data)
    if isinstance(insn, str):
        return Refused(insn, _ISA)
    opcode, length = insn.opcode, insn.length
    second = insn.data[insn.at + 1] if length > insn.at + 1 else 0
    if opcode in {_INT3, _INT}:
        return Refused("it is a breakpoint, or a software interrupt", _ISA)
    if opcode >> 4 == 7 or (opcode == 0x0F and second >> 4 == 8):
        return Emulated("JCC", length, _jcc(insn))
    if opcode in {0xE0, 0xE1, 0xE2}:
        return Emulated("LOOP", length, _loop(insn, fidelity))
    if opcode == 0xE3:
        return Emulated("JCXZ", length, _jcxz(insn, fidelity))
    if opcode in {0xE8, 0xE9, 0xEB}:
        size = 1 if opcode == 0xEB else 4
        offset = length + insn.signed(insn.at + 1, size)
        call = opcode == 0xE8
        return Emulated("CALL" if call else "JMP", length, _transfer(insn, call=call, offset=offset))
    if opcode == 0xFF and second >> 3 & 7 in {2, 4}:
        call = second >> 3 & 7 == 2
        return Emulated("CALL" if call else "JMP", length, _indirect(insn, call=call))
    if opcode in {0xC2, 0xC3}:
        return Emulated("RET" if opcode == 0xC3 else "RET16", length, _ret(insn), leaves=True)
    if opcode == 0x55 and length == 1:
        return Emulated("PUSHL_EBP", length, _push_rbp(insn))
    if opcode == 0x90 and not insn.rex & 1:
        return Emulated("NOP", length, Plan((Set("rip", "rip", length),)))
    if fidelity is Fidelity.EXACT and opcode == 0xC7 and second == 0xF8:
        return Refused("xbegin names the address of its handler relative to itself", _OURS)
    return _common(insn, fidelity)


def _common(insn: _Instruction, fidelity: Fidelity) -> Treatment:
    """Run a copy; one that names an address relative to rip goes by way of a register the instruction does not use."""
    if insn.opcode in {0xC4, 0xC5, 0x62}:
        relative = _vector_is_relative(insn)
        if relative:
            return Refused("a VEX or EVEX instruction with an operand relative to rip", _OURS)
        return OutOfLine(insn.length, insn.data)
    at = insn.modrm_at
    if at is None or insn.data[at] & 0xC7 != 0x05:
        return OutOfLine(insn.length, insn.data)
    other = insn.data[at] >> 3 & 7
    code = bytearray(insn.data)
    if fidelity is Fidelity.FREEBSD:
        # rax, or rcx where rax is the other operand; REX.B makes r8 or r9 of them.  cmpxchg, mul and div use rax
        # although no operand names it: they compute something else then.
        number = 0 if other else 1
        extended = insn.rex & 1
    else:
        # rsi or rdi, as Linux does: no instruction with such an operand uses them unnamed.
        number = 6 if other != 6 else 7
        extended = 0
        if insn.rex & 1:
            code[insn.rex_at] &= ~1
    code[at] = 0x80 | other << 3 | number
    return OutOfLine(insn.length, bytes(code), _REGISTERS[number | extended << 3])


def _vector_is_relative(insn: _Instruction) -> bool:
    at = insn.at + {0xC5: 3, 0xC4: 4, 0x62: 5}[insn.opcode]
    return at < insn.length and insn.data[at] & 0xC7 == 0x05


# Scratch space


def _chunk(move: OutOfLine, after: int, saved: int, wants_trap: bool) -> bytes:  # noqa: ARG001
    restore = b""
    if move.scratch:
        number = _REGISTERS.index(move.scratch)
        restore = bytes((0x48 | number >> 3, 0xB8 | number & 7)) + saved.to_bytes(8, "little")
    first = move.code + restore + _JUMP + after.to_bytes(8, "little")
    return first + move.code + bytes((0xCD, _T_DTRACE_RET))


def _second_copy(move: OutOfLine) -> int:
    return len(move.code) + (10 if move.scratch else 0) + len(_JUMP) + 8


# Functions (libdtrace)


def _boundaries(code: bytes) -> Iterator[int]:
    offset = 0
    for length in instruction_lengths(code):
        yield offset
        offset += length


def _has_jump_table(code: bytes) -> bool:
    """Tell whether disassembly fails somewhere: then data lies between the instructions, FreeBSD thinks."""
    return sum(instruction_lengths(code)) < len(code)


def _returns(code: bytes, _address: int) -> Iterator[int]:
    return _certain_returns(code) if _has_jump_table(code) else _return_sites(code)


def _certain_returns(code: bytes) -> Iterator[int]:
    """Yield the returns that end a frame, which no data is likely to look like."""
    for ending in (b"\xc9", b"\x48\x89\xec\x5d", b"\x89\xec\x5d"):
        for ret in (b"\xc3", b"\xf3\xc3"):
            at = code.find(ending + ret)
            while at >= 0:
                yield at + len(ending)
                at = code.find(ending + ret, at + 1)


def _return_sites(code: bytes) -> Iterator[int]:
    size = len(code)
    end = 0
    for length in instruction_lengths(code):
        offset, end = end, end + length
        first = code[offset]
        second = code[offset + 1] if offset + 1 < size else 0
        if first in {0xC3, 0xC2} or (first == 0xF3 and second in {0xC3, 0xC2}):
            yield offset
            continue
        if first in {0xE9, 0xEB} or first >> 4 == 7:
            displacement = int.from_bytes(code[offset + 1 : offset + length], "little", signed=True)
        elif first == 0x0F and second >> 4 == 8:
            displacement = int.from_bytes(code[offset + 2 : offset + length], "little", signed=True)
        else:
            continue
        # The destination, from the start of the function, is compared unsigned: backwards out is out, too.
        if offset + length + displacement & 0xFFFF_FFFF_FFFF_FFFF >= size:
            yield offset


PORT: Final = Port(
    breakpoint=lambda _length: bytes((_INT3,)),
    longest=15,
    treat=_treat,
    returns=_returns,
    boundaries=_boundaries,
    has_jump_table=_has_jump_table,
    arguments=("rdi", "rsi", "rdx", "rcx", "r8"),
    late_arguments=("r9",),
    stack_skip=1,
    results=("rax", "rbx"),
    chunk=_chunk,
    copies=1,
    second_copy=_second_copy,
    trap_offset=lambda move: _second_copy(move) + len(move.code),
    always_steps=False,
    return_trap=_T_DTRACE_RET,
)
