"""The returns and the instruction boundaries of functions on x86-64 and i386.

Under `Fidelity.FREEBSD` they are those that libdtrace finds, with its errors: an instruction that
its disassembler does not know ends the scan; it searches 32-bit conditional jumps with their bytes
swapped; it ignores jumps through registers.

Source: FreeBSD cddl/contrib/opensolaris/lib/libdtrace/i386/dt_isadep.c
(dt_pid_create_return_probe, dt_pid_has_jump_table).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from emu.isa.x86.instruction import LONG_MODE, Mode, instruction_lengths, take_apart
from emu.isa.x86.length import PREFIXES
from emu.support.words import WORD_MASK
from providers.dis_tables import known_lengths
from providers.fidelity import Fidelity

_BREAKPOINT: Final = b"\xcc"
# The beginning of each instruction that may leave a function: a return or a jump behind any prefixes.  Other
# instructions may begin so, too (40 to 4f are prefixes in 64-bit code only): it saves decoding most of them.
_MAY_LEAVE: Final = re.compile(
    rb"[\x40-\x4f%s]*(?:[\xc2\xc3\xe9\xeb\xff\x70-\x7f]|\x0f[\x80-\x8f])" % re.escape(bytes(PREFIXES)), re.DOTALL
)
# The instructions that end a frame, and the return after them: leave, or mov %rbp, %rsp and pop %rbp in either
# encoding.
_ENDINGS: Final = re.compile(rb"(?:\xc9|(?:\x89\xec|\x8b\xe5)\x5d)(?=\xf3?\xc3)", re.DOTALL)
# The same in libdtrace's form.
_FREEBSD_ENDINGS: Final = (b"\xc9\xc3", b"\xc9\xf3\xc3", b"\x8b\xe5\x5d\xc3", b"\x8b\xe5\x5d\xf3\xc3")


def boundaries(code: bytes, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield the offsets of instructions."""
    offset = 0
    for length in instruction_lengths(code, mode):
        yield offset
        offset += length


def decoded(code: bytes, fidelity: Fidelity, mode: Mode = LONG_MODE) -> int:
    """Return where disassembly fails; the size of the code: nowhere.

    FreeBSD concludes then that data lies between the instructions.
    """
    return sum(_lengths(code, fidelity, mode))


def _lengths(code: bytes, fidelity: Fidelity, mode: Mode) -> Iterator[int]:
    if fidelity is not Fidelity.FREEBSD:
        yield from instruction_lengths(code, mode)
        return
    offset = 0
    for length in known_lengths(code, mode):
        if code[offset : offset + length] == _BREAKPOINT:
            return  # libdtrace assumes another debugger's breakpoint
        yield length
        offset += length


def returns(code: bytes, _address: int, fidelity: Fidelity, mode: Mode = LONG_MODE) -> Iterator[int]:
    """Yield the offsets of returns."""
    if fidelity is Fidelity.FREEBSD:
        return _libdtrace(code, mode)
    return _certain_returns(code) if decoded(code, fidelity, mode) < len(code) else _return_sites(code, mode)


def _certain_returns(code: bytes) -> Iterator[int]:
    """Yield the returns that end a frame: data are unlikely to have these bytes."""
    return (found.end() for found in _ENDINGS.finditer(code))


def _return_sites(code: bytes, mode: Mode) -> Iterator[int]:
    """Yield returns and the jumps that leave the function, or may leave it.

    Each hit decides whether the function is left.
    """
    size = len(code)
    end = 0
    for length in instruction_lengths(code, mode):
        offset, end = end, end + length
        if not _MAY_LEAVE.match(code, offset):
            continue
        insn = take_apart(code[offset:end], mode)
        if insn is None:
            return
        if insn.opcode in {0xC3, 0xC2} or (insn.opcode == 0xFF and insn.extension == 4):
            yield offset
        elif insn.opcode in {0xE9, 0xEB} or insn.is_conditional:
            at = insn.at + (2 if insn.opcode == 0x0F else 1)
            if not 0 <= end + insn.signed(at, length - at) < size:
                yield offset


def _libdtrace(code: bytes, mode: Mode) -> Iterator[int]:
    """Yield the returns that libdtrace finds."""
    text = code + bytes(4)
    certain_only = decoded(code, Fidelity.FREEBSD, mode) < len(code)
    end = 0
    for length in _lengths(code, Fidelity.FREEBSD, mode):
        offset, end = end, end + length
        if certain_only:
            # The scan continues after the whole sequence, because no other sequence begins inside it.
            ending = next((one for one in _FREEBSD_ENDINGS if text.startswith(one, offset)), None)
            if ending is not None:
                yield offset + ending.index(b"\xf3" if b"\xf3" in ending else b"\xc3")
        elif _is_return(text[offset : end + 1], length, offset, len(code)):
            yield offset


def _is_return(insn: bytes, length: int, offset: int, size: int) -> bool:
    first, second = insn[0], insn[1]
    if (length, first) in {(1, 0xC3), (3, 0xC2)} or (length, first, second) in {(2, 0xF3, 0xC3), (4, 0xF3, 0xC2)}:
        return True
    if (length == 2 and (first == 0xEB or first >> 4 == 7)) or (length == 5 and first == 0xE9):
        at = 1
    elif length == 6 and (first >> 4, second) == (8, 0x0F):
        at = 2  # DT_ISJ32 compares the two bytes in the wrong order: it intends 0f 8x
    else:
        return False
    displacement = int.from_bytes(insn[at:length], "little", signed=True)
    # The comparison is unsigned, so a target before the function is outside, too.
    return offset + length + displacement & WORD_MASK >= size
