"""Uprobes on x86-64.  Source: Linux 6.12 arch/x86/kernel/uprobes.c."""

from __future__ import annotations

from typing import Final

from emu.displaced import Plan, Set, Store
from emu.isa.x86.plans import LONG_MODE, REGISTERS, Instruction, Mode, jcc, take_apart, transfer
from providers.uprobes.port import ENOEXEC, ENOTSUPP, Analysis, Port, Refused, Simulated, SingleStepped

_SOURCE: Final = "Linux arch/x86/kernel/uprobes.c"
_OURS: Final = "this simulator: it would compute something else"
_BAD_PREFIXES: Final = frozenset({0x26, 0x2E, 0x36, 0x3E, 0xF0})
# One-byte opcodes that are refused in 64-bit mode (good_insns_64).
#
# The table for 0f xx never decides: the opcode 0f itself is looked up in the first one, and is good.  The opcodes of
# VEX instructions are looked up there too.
_BAD_OPCODES: Final = frozenset(
    bytes.fromhex("06070e16171e1f272f373f6061626c6d6e6f829acccdcecfd4d5d6e4e5e6e7eaecedeeeff1f4fafb")
)
# The same in 32-bit tasks (good_insns_32).
_BAD_OPCODES_32: Final = frozenset(bytes.fromhex("07171f6c6d6e6fcccdcecfe4e5e6e7ecedeeeff1f4fafb"))
_RETURNS: Final = frozenset({0xC2, 0xC3, 0xCA, 0xCB, 0xEA})
_FAR_CALL: Final = 0x9A
# The operand is of 64 bits, whatever other prefixes say.
_COUNTED: Final = frozenset({0xE0, 0xE1, 0xE2, 0xE3})
_NOP: Final = 0x90
_PUSHF, _POPF = 0x9C, 0x9D


def _is_near_jcc(insn: Instruction) -> bool:
    return insn.opcode == 0x0F and insn.data[insn.at + 1] >> 4 == 8


def _is_branch(insn: Instruction) -> bool:
    return insn.opcode in {0xE8, 0xE9, 0xEB} or insn.opcode >> 4 == 7 or _is_near_jcc(insn)


def analyze(code: bytes, _address: int, mode: Mode = LONG_MODE) -> Analysis:
    """Decide about an instruction (arch_uprobe_analyze_insn)."""
    insn = take_apart(code, mode)
    if isinstance(insn, str):
        return Refused(ENOEXEC, insn, _SOURCE)
    if insn.prefixes & _BAD_PREFIXES:
        return Refused(ENOTSUPP, "it has a segment or lock prefix", _SOURCE)
    vector = insn.vector_at
    opcode = insn.opcode if vector is None else insn.data[vector]
    second = insn.data[insn.at + 1] if insn.length > insn.at + 1 else 0
    if opcode in (_BAD_OPCODES if mode is LONG_MODE else _BAD_OPCODES_32):
        return Refused(ENOTSUPP, f"opcode {opcode:02x} is in the table of those that cannot be probed", _SOURCE)
    if opcode == 0x8E and second >> 3 & 7 == 2:
        return Refused(ENOTSUPP, "mov to ss masks interrupts for an instruction", _SOURCE)
    if vector is None and _is_branch(insn) and 0x66 in insn.prefixes:
        return Refused(ENOTSUPP, "CPUs differ about a branch with an operand-size prefix", _SOURCE)
    if vector is not None:
        return _stepped(insn, second, vector)
    why = _untrustworthy(insn, second)
    if why:
        return Refused(ENOTSUPP, why, _OURS)
    return _simulated(insn) or _stepped(insn, second, vector)


def _calls(insn: Instruction, second: int) -> bool:
    return insn.opcode == _FAR_CALL or (insn.opcode == 0xFF and second >> 3 & 7 in {2, 3})


def _untrustworthy(insn: Instruction, second: int) -> str:
    """Return why an instruction is refused that Linux steps; "" if it is not.

    Linux moves the pc by as much as the copy was moved, and writes the return address as a word.
    """
    if insn.narrow and insn.opcode in _COUNTED:
        return "CPUs differ about a branch with an operand-size prefix"
    far_in_long_mode = insn.mode is LONG_MODE and second >> 3 & 7 == 3 and not insn.wide
    if _calls(insn, second) and (insn.narrow or far_in_long_mode):
        return "the return address that it pushes is smaller than a word"
    return ""


def _simulated(insn: Instruction) -> Simulated | None:
    """Return what the kernel does itself; None: it does not."""
    if insn.opcode == _NOP and not insn.prefixes and not insn.rex:
        # Linux does so with any prefixes: `pause` is one then, and so is `xchg rax,r8`, which is none.
        return Simulated("nop", insn.length, Plan((Set(insn.mode.pc, insn.mode.pc, insn.length),)))
    if insn.opcode in {0xE9, 0xEB}:
        offset = insn.length + insn.signed(insn.at + 1, 1 if insn.opcode == 0xEB else 4)
        return Simulated("jmp", insn.length, transfer(insn, call=False, offset=offset))
    if insn.opcode == 0xE8:
        offset = insn.length + insn.signed(insn.at + 1, 4)
        return Simulated("call", insn.length, transfer(insn, call=True, offset=offset))
    if insn.opcode >> 4 == 7 or _is_near_jcc(insn):
        return Simulated("jcc", insn.length, jcc(insn))
    if 0x50 <= insn.opcode <= 0x57 and (insn.length == 1 or (insn.length == 2 and insn.rex == 0x41)):
        register = insn.mode.registers[insn.opcode - 0x50 | (insn.rex & 1) << 3]
        pc, sp, word = insn.mode.pc, insn.mode.sp, insn.mode.word
        plan = Plan((Store(register, sp, -word, word), Set(sp, sp, -word), Set(pc, pc, insn.length)))
        return Simulated("push", insn.length, plan)
    return None


def _stepped(insn: Instruction, second: int, vector: int | None) -> Analysis:
    extension = second >> 3 & 7
    absolute = insn.opcode in _RETURNS or (insn.opcode == 0xFF and extension in {2, 3, 4, 5})
    calls = _calls(insn, second)
    absolute = absolute or insn.opcode == _FAR_CALL
    at = insn.relative_at
    if at is None:
        flags = insn.opcode == _PUSHF, insn.opcode == _POPF
        return SingleStepped(insn.length, insn.data, "", absolute, calls, *flags)
    code = bytearray(insn.data)
    other = code[at] >> 3 & 7
    used = {other}
    if vector is not None:
        # vvvv, inverted: in the last byte of VEX, and in the third of EVEX.
        used.add(~(code[insn.at + (1 if insn.opcode == 0xC5 else 2)]) >> 3 & 7)
        if insn.opcode != 0xC5:
            code[insn.at + 1] |= 0x60  # X and B are inverted: none
    elif insn.rex & 1:
        code[insn.rex_at] &= ~1
    number = next(number for number in (6, 7, 3) if number not in used)
    code[at] = 0x80 | other << 3 | number
    return SingleStepped(insn.length, bytes(code), REGISTERS[number], absolute, calls)


PORT: Final = Port(
    breakpoint=b"\xcc",
    longest=16,
    alignment=1,
    slot=128,
    step_trap=b"",
    analyze=analyze,
)
