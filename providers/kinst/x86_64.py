"""kinst on x86-64: calls are emulated, everything else is copied and jumps back.

Source: FreeBSD sys/cddl/dev/kinst/amd64/kinst_isa.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.isa.x86.length import instruction_lengths
from emu.isa.x86.plans import Instruction, indirect, take_apart, transfer
from providers.kinst.port import ALWAYS, ENTERED, FRAMED, Code, Copied, Emulated, Frames, Port, Refused, Treatment

_ISA: Final = "FreeBSD sys/cddl/dev/kinst/amd64/kinst_isa.c"
_OURS: Final = "this simulator: FreeBSD copies it as it is, and it would compute something else"
_INT3: Final = 0xCC
# DTRACE_INVOP_NOP.
_NOP: Final = 4
# DTRACE_INVOP_CALL: the stub pushes the return address that the handler leaves in its scratch space.
_CALL: Final = 6
# jmp [rip]: to the address that follows.
_JUMP: Final = bytes.fromhex("ff2500000000")
_SIZE: Final = 32

_REFUSED: Final = {
    0xCC: ("it is a breakpoint", _OURS),
    0xCD: ("it is a software interrupt", _OURS),
    0x9D: ("it may enable interrupts, and then two interrupts could want one trampoline", _ISA),
    0xFB: ("it enables interrupts, and then two interrupts could want one trampoline", _ISA),
    0xE3: ("it has no form that reaches further than 127 bytes", _ISA),
    **dict.fromkeys((0xE0, 0xE1, 0xE2), ("it has no form that reaches further than 127 bytes", _OURS)),
}
_PUSH_RBP, _POP_RBP, _LEAVE, _SET_RBP = 0x55, 0x5D, 0xC9, b"\x48\x89\xe5"
_RETURNS: Final = frozenset({0xC2, 0xC3, 0xCA, 0xCB, 0xCF})
# First byte of VEX and EVEX -> offset of the ModRM byte from it.
_VECTORS: Final = {0xC5: 3, 0xC4: 4, 0x62: 5}


def _treat(code: Code) -> Treatment:
    """Decide about an instruction (kinst_instr_dissect)."""
    insn = take_apart(code.data)
    if isinstance(insn, str):
        return Refused(insn, _ISA)
    opcode, data, at, length = insn.opcode, insn.data, insn.at, insn.length
    if opcode in _REFUSED:
        return Refused(*_REFUSED[opcode])
    if insn.narrow and insn.is_near_branch:
        return Refused("CPUs differ about a branch with an operand-size prefix", _OURS)
    after = code.address + length
    if opcode == 0xE8:
        return Emulated(length, transfer(insn, call=True, offset=length + insn.signed(at + 1, 4)))
    if opcode >> 4 == 7:
        longer = data[:at] + bytes((0x0F, opcode + 0x10, 0, 0, 0, 0))
        return Copied(length, longer, at + 2, after + insn.signed(at + 1, 1), opcode & 15)
    if opcode == 0xEB:
        return Copied(length, data[:at] + b"\xe9\0\0\0\0", at + 1, after + insn.signed(at + 1, 1), ALWAYS)
    if opcode == 0xE9:
        return Copied(length, data, at + 1, after + insn.signed(at + 1, 4), ALWAYS)
    if opcode == 0x0F and data[at + 1] >> 4 == 8:
        return Copied(length, data, at + 2, after + insn.signed(at + 2, 4), data[at + 1] & 15)
    leaves = ALWAYS if opcode in _RETURNS else None
    if opcode == 0xFF:
        operation = data[at + 1] >> 3 & 7
        if operation == 2:
            return Emulated(length, indirect(insn, call=True))
        if operation == 3:
            return Refused("it is a far call", _OURS)
        leaves = ALWAYS if operation in {4, 5} else None
    relative = _relative(insn)
    if relative is None:
        return Copied(length, data, leaves=leaves)
    return Copied(length, data, relative, after + insn.signed(relative, 4), leaves)


def _relative(insn: Instruction) -> int | None:
    """Return the offset of a distance from rip in an instruction, None if it has none."""
    vector = _VECTORS.get(insn.opcode)
    at = insn.modrm_at if vector is None else insn.at + vector
    return at + 1 if at is not None and at < insn.length and insn.data[at] & 0xC7 == 0x05 else None


def _trampoline(copied: Copied, address: int, after: int) -> bytes:
    """Fill a trampoline (kinst_trampoline_populate): the copy, and an absolute jump to what follows the original."""
    code = bytearray(copied.code)
    if copied.place >= 0:
        # The distance counts from the end of the instruction, behind whatever follows it.
        distance = copied.target - (address + len(code))
        code[copied.place : copied.place + 4] = distance.to_bytes(4, "little", signed=True)
    return bytes(code) + _JUMP + after.to_bytes(8, "little")


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
    behind=0,
    treat=_treat,
    frame_after=_frame_after,
    size=_SIZE,
    trampoline=_trampoline,
    trap=None,
    answer=_NOP,
    bias=0,
    pushing=_CALL,
)
