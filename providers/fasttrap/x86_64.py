"""Fasttrap on x86-64.

Source: FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c (what becomes of an
instruction), cddl/contrib/opensolaris/lib/libdtrace/i386/dt_isadep.c (where functions return).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.displaced import Plan, Set
from emu.isa.x86.length import instruction_lengths
from emu.isa.x86.plans import (
    LONG_MODE,
    REGISTERS,
    Instruction,
    Mode,
    indirect,
    jcc,
    jcxz,
    loop,
    push_fp,
    ret,
    take_apart,
    transfer,
)
from emu.words import WORD_MASK
from providers.fasttrap.port import Code, Emulated, Fidelity, OutOfLine, Port, Refused, Treatment

_ISA: Final = "FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c"
_OURS: Final = "this simulator: it would compute something else"

_INT3: Final = 0xCC
_INT: Final = 0xCD
# FreeBSD sys/x86/include/trap.h.
_T_DTRACE_RET: Final = 32
"""The operand is of 64 bits, whatever other prefixes say."""
# Of 32-bit mode alone.
_FAR_CALL: Final = 0x9A
"""Opcodes of one byte that transfer control within the code segment."""
# jmp [rip]: to the address that follows.
_JUMP: Final = bytes.fromhex("ff2500000000")


def treat(code: Code, fidelity: Fidelity, mode: Mode = LONG_MODE) -> Treatment:
    """Decide about an instruction (fasttrap_tracepoint_init)."""
    insn = take_apart(code.data, mode)
    if isinstance(insn, str):
        return Refused(insn, _ISA)
    opcode, length = insn.opcode, insn.length
    second = insn.data[insn.at + 1] if length > insn.at + 1 else 0
    if opcode in {_INT3, _INT}:
        return Refused("it is a breakpoint, or a software interrupt", _ISA)
    why = _untrustworthy(insn, second) if fidelity is Fidelity.EXACT else ""
    if why:
        return Refused(why, _OURS)
    if opcode >> 4 == 7 or (opcode == 0x0F and second >> 4 == 8):
        return Emulated("JCC", length, jcc(insn))
    if opcode in {0xE0, 0xE1, 0xE2}:
        return Emulated("LOOP", length, loop(insn, quirks=fidelity is Fidelity.FREEBSD))
    if opcode == 0xE3:
        return Emulated("JCXZ", length, jcxz(insn, quirks=fidelity is Fidelity.FREEBSD))
    if opcode in {0xE8, 0xE9, 0xEB}:
        size = 1 if opcode == 0xEB else 4
        offset = length + insn.signed(insn.at + 1, size)
        call = opcode == 0xE8
        return Emulated("CALL" if call else "JMP", length, transfer(insn, call=call, offset=offset))
    if opcode == 0xFF and second >> 3 & 7 in {2, 4}:
        call = second >> 3 & 7 == 2
        return Emulated("CALL" if call else "JMP", length, indirect(insn, code.data[length:], call=call))
    if opcode in {0xC2, 0xC3}:
        return Emulated("RET" if opcode == 0xC3 else "RET16", length, ret(insn), leaves=True)
    if opcode == 0x55 and length == 1:
        return Emulated("PUSHL_EBP", length, push_fp(insn))
    if opcode == 0x90 and not insn.rex & 1:
        return Emulated("NOP", length, Plan((Set(mode.pc, mode.pc, length),)))
    return _common(insn, fidelity)


def _untrustworthy(insn: Instruction, second: int) -> str:
    """Return why an instruction is refused that FreeBSD takes; "" if it is not."""
    opcode, extension = insn.opcode, second >> 3 & 7
    if opcode == 0xC7 and second == 0xF8:
        return "xbegin names the address of its handler relative to itself"
    if opcode == _FAR_CALL or (opcode == 0xFF and extension == 3):
        return "a far call would push the address after its copy"
    if insn.narrow and insn.is_near_branch:
        return "CPUs differ about a branch with an operand-size prefix"
    return ""


def _common(insn: Instruction, fidelity: Fidelity) -> Treatment:
    """Run a copy; one that names an address relative to rip goes by way of a register the instruction does not use."""
    at = insn.relative_at
    if at is None:
        return OutOfLine(insn.length, insn.data)
    if insn.vector_at is not None:
        return Refused("a VEX, EVEX or XOP instruction with an operand relative to rip", _OURS)
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
    return OutOfLine(insn.length, bytes(code), REGISTERS[number | extended << 3])


# Scratch space


def _chunk(move: OutOfLine, _at: int, after: int, saved: int, wants_trap: bool) -> bytes:  # noqa: ARG001
    restore = b""
    if move.scratch:
        number = REGISTERS.index(move.scratch)
        restore = bytes((0x48 | number >> 3, 0xB8 | number & 7)) + saved.to_bytes(8, "little")
    first = move.code + restore + _JUMP + after.to_bytes(8, "little")
    return first + move.code + bytes((0xCD, _T_DTRACE_RET))


def _second_copy(move: OutOfLine) -> int:
    return len(move.code) + (10 if move.scratch else 0) + len(_JUMP) + 8


# Functions (libdtrace)


def boundaries(code: bytes, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield where instructions begin."""
    offset = 0
    for length in instruction_lengths(code, mode=mode.capstone):
        yield offset
        offset += length


def has_jump_table(code: bytes, mode: Mode = LONG_MODE) -> bool:
    """Tell whether disassembly fails somewhere: then data lies between the instructions, FreeBSD thinks."""
    return sum(instruction_lengths(code, mode=mode.capstone)) < len(code)


def returns(code: bytes, _address: int, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield where functions return."""
    return _certain_returns(code) if has_jump_table(code, mode) else _return_sites(code, mode)


def _certain_returns(code: bytes) -> Iterator[int]:
    """Yield the returns that end a frame, which no data is likely to look like."""
    for ending in (b"\xc9", b"\x48\x89\xec\x5d", b"\x89\xec\x5d"):
        for leaving in (b"\xc3", b"\xf3\xc3"):
            at = code.find(ending + leaving)
            while at >= 0:
                yield at + len(ending)
                at = code.find(ending + leaving, at + 1)


def _return_sites(code: bytes, mode: Mode) -> Iterator[int]:
    size = len(code)
    end = 0
    for length in instruction_lengths(code, mode=mode.capstone):
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
        if offset + length + displacement & WORD_MASK >= size:
            yield offset


PORT: Final = Port(
    breakpoint=lambda _length: bytes((_INT3,)),
    longest=15,
    treat=treat,
    returns=returns,
    boundaries=boundaries,
    has_jump_table=has_jump_table,
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
