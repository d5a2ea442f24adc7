"""kinst on x86-64: calls are emulated, everything else is copied and jumps back.

Source: FreeBSD sys/cddl/dev/kinst/amd64/kinst_isa.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.displaced.decision import ALWAYS, Code, Decision, OutOfLine, Rule
from emu.isa.x86.instruction import LONG_MODE, Instruction, instruction_lengths
from emu.isa.x86.plans import indirect, transfer
from emu.isa.x86_64.stub import STUB
from providers.kinst.port import ENTERED, FRAMED, Frames, Port
from providers.x86 import Row, Table, Test, always, emulate, extended, offset, opcodes, refuse

_ISA: Final = "FreeBSD sys/cddl/dev/kinst/amd64/kinst_isa.c"
_OURS: Final = "this simulator: FreeBSD copies it unchanged, and the copy would compute another result"
_INT3: Final = 0xCC
_REX2: Final = 0xD5
# DTRACE_INVOP_CALL: the stub pushes the return address that the handler leaves in its scratch space.
_CALL: Final = STUB.number("CALL")
# jmp [rip]: to the address that follows.
_JUMP: Final = bytes.fromhex("ff2500000000")
_SIZE: Final = 32
_PUSH_RBP, _POP_RBP, _LEAVE, _SET_RBP = 0x55, 0x5D, 0xC9, b"\x48\x89\xe5"


def _refused(name: str, test: Test, why: str, source: str = _ISA) -> Row:
    return Row(name, why, source, test, refuse)


def _copied(rule: Rule, insn: Instruction, leaves: int | None = None) -> Decision:
    """Run a copy; a distance from rip in it is filled in later."""
    at = insn.relative_at
    if at is None:
        return OutOfLine(rule, insn.length, insn.data, leaves=leaves)
    target = insn.length + insn.signed(at + 1, 4)
    return OutOfLine(rule, insn.length, insn.data, place=at + 1, target=target, leaves=leaves)


def _leaving(rule: Rule, insn: Instruction) -> Decision:
    """Run a copy that leaves the trampoline."""
    return _copied(rule, insn, ALWAYS)


def _jump(rule: Rule, insn: Instruction) -> Decision:
    """Run a copy of a direct jump, in its form that reaches everywhere."""
    code = insn.data[: insn.at] + b"\xe9\0\0\0\0"
    return OutOfLine(rule, insn.length, code, place=insn.at + 1, target=offset(insn), leaves=ALWAYS)


def _conditional(rule: Rule, insn: Instruction) -> Decision:
    """Run a copy of a conditional jump, in its form that reaches everywhere."""
    short = insn.opcode != 0x0F
    number = (insn.opcode if short else insn.second) & 15
    distance = insn.signed(insn.at + 1, 1) if short else insn.signed(insn.at + 2, 4)
    code = insn.data[: insn.at] + bytes((0x0F, 0x80 | number, 0, 0, 0, 0))
    return OutOfLine(rule, insn.length, code, place=insn.at + 2, target=insn.length + distance, leaves=number)


_TOO_SHORT: Final = "it has no form that reaches further than 127 bytes"
_AWAY: Final = "it transfers control, and does the same at any address"
TABLE: Final = Table(
    LONG_MODE,
    Rule("malformed", "the bytes are not an instruction", _ISA),
    (
        _refused("two segments", lambda insn: len(insn.segments) > 1, "it has two segment prefixes"),
        _refused("lock", lambda insn: insn.refuses_lock, "the CPU refuses its LOCK prefix (#UD)", _OURS),
        _refused("rex2", opcodes(_REX2), "no rule reads APX", _OURS),
        _refused(
            "xbegin",
            lambda insn: insn.opcode == 0xC7 and insn.second == 0xF8,
            "the address of its handler is relative to the pc",
            _OURS,
        ),
        _refused("int3", opcodes(_INT3), "it is a breakpoint", _OURS),
        _refused("int", opcodes(0xCD), "it is a software interrupt", _OURS),
        _refused("popf", opcodes(0x9D), "it may enable interrupts, and then two interrupts could need one trampoline"),
        _refused("sti", opcodes(0xFB), "it enables interrupts, and then two interrupts could need one trampoline"),
        _refused("jrcxz", opcodes(0xE3), _TOO_SHORT),
        _refused("loop", opcodes(0xE0, 0xE1, 0xE2), _TOO_SHORT, _OURS),
        _refused(
            "narrow branch",
            lambda insn: insn.narrow and insn.is_near_branch,
            "CPUs differ about a branch with an operand-size prefix",
            _OURS,
        ),
        _refused("far call", extended(0xFF, 3), "it is a far call", _OURS),
        Row("call", "it must save the return address of the original", _ISA, opcodes(0xE8),
            emulate(lambda insn: transfer(insn, call=True, offset=offset(insn)))),
        Row("call, indirect", "it must save the return address of the original", _ISA, extended(0xFF, 2),
            emulate(lambda insn: indirect(insn, call=True))),
        Row("jcc", "its distance from the trampoline is longer", _ISA, lambda insn: insn.is_conditional, _conditional),
        Row("jmp", "its distance from the trampoline is longer", _ISA, opcodes(0xE9, 0xEB), _jump),
        Row("jmp, indirect", _AWAY, _ISA, extended(0xFF, 4, 5), _leaving),
        Row("ret", _AWAY, _ISA, opcodes(0xC2, 0xC3, 0xCA, 0xCB, 0xCF), _leaving),
        Row("copied", "it does the same at any address", _ISA, always, _copied),
    ),
)  # fmt: skip


def _treat(code: Code) -> Decision:
    """Decide about an instruction (kinst_instr_dissect)."""
    return TABLE.decide(code)


def _trampoline(copied: OutOfLine, address: int, original: int) -> bytes:
    """Fill a trampoline (kinst_trampoline_populate).

    It contains the copy, and an absolute jump to the instruction after the original.
    """
    code = bytearray(copied.code)
    if copied.place >= 0:
        # The distance is counted from the end of the instruction, after any immediate.
        distance = original + copied.target - (address + len(code))
        code[copied.place : copied.place + 4] = distance.to_bytes(4, "little", signed=True)
    return bytes(code) + _JUMP + (original + copied.length).to_bytes(8, "little")


def _boundaries(code: bytes) -> Iterator[int]:
    offset = 0
    for length in instruction_lengths(code):
        yield offset
        offset += length


def _frame_after(code: bytes, before: Frames) -> Frames:
    """Follow push rbp; mov rbp, rsp ... leave or pop rbp."""
    if code[0] == _PUSH_RBP:
        return Frames(made=False, pushed=1)
    if code[:3] == _SET_RBP:
        return FRAMED
    return ENTERED if code[0] in {_POP_RBP, _LEAVE} else before


PORT: Final = Port(
    exclusions=(),
    patch=lambda _length: bytes((_INT3,)),
    boundaries=_boundaries,
    longest=15,
    around=0,
    treat=_treat,
    frame_after=_frame_after,
    size=_SIZE,
    trampoline=_trampoline,
    trap=None,
    pushing=_CALL,
)
