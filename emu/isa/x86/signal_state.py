"""The x87 and SSE registers in the frame of a signal: the format of fxsave and xsave.

Source: Linux 6.12 arch/x86/include/uapi/asm/sigcontext.h, arch/x86/kernel/fpu/signal.c
(copy_fpstate_to_sigframe, convert_from_fxsr), arch/x86/kernel/signal.c (handle_signal).
"""

from __future__ import annotations

import struct
from functools import partial
from typing import Final

from emu.isa.signal_state import FrameState, StateCpu, Trap, read_file, write_file
from emu.isa.unicorn_model import VectorFile
from emu.isa.x86.cpuid import AREA, STATES
from emu.isa.x86.linux import FLOATING_POINT
from emu.isa.x86.unicorn import X87

_REGISTERS: Final = 8
_SLOT: Final = 16
_X87_SIZE: Final = 10
# struct fxregs_state: control, status, tag word; mxcsr and its mask; then the registers.
_CONTROL: Final = struct.Struct("<HHB")
_MXCSR_AT, _MXCSR_MASK = 24, 0xFFFF
_ST_AT, _XMM_AT, _SOFTWARE_AT = 32, 160, 464
# struct _fpx_sw_bytes: what is in the frame; the header of xsave behind the 512 bytes, and the mark behind it all.
_SOFTWARE: Final = struct.Struct("<IIQI")
_MAGIC_1, _MAGIC_2 = 0x4650_5853, 0x4650_5845
_HEADER_AT: Final = 512
_SIZE: Final = AREA + 4
# struct fregs_state, in front of it in 32-bit programs: seven words, eight registers, status and magic.
_LEGACY: Final = struct.Struct("<7I80sHH")
_UPPER_ONES: Final = 0xFFFF_0000
_TOP_SHIFT, _EMPTY = 11, 3


def _abridged(tags: int) -> int:
    """Return the tag word of fxsave: a bit for each register that is not empty."""
    return sum((tags >> 2 * place & _EMPTY != _EMPTY) << place for place in range(_REGISTERS))


def _whole(abridged: int) -> int:
    """Return a tag word with empty registers and others."""
    return sum((0 if abridged >> place & 1 else _EMPTY) << 2 * place for place in range(_REGISTERS))


def _top(status: int) -> int:
    """Return where the top of the x87's stack is among its registers, in bytes."""
    return (status >> _TOP_SHIFT & 7) * _X87_SIZE


def _save(cpu: StateCpu, _error: int, vectors: VectorFile, *, legacy: bool) -> bytes:
    data = bytearray(_SIZE)
    control, status, tags = (cpu.read_register(name) for name in ("fpcw", "fpsw", "fptag"))
    _CONTROL.pack_into(data, 0, control, status, _abridged(tags))
    struct.pack_into("<II", data, _MXCSR_AT, cpu.read_register("mxcsr"), _MXCSR_MASK)
    registers, top = read_file(cpu, 1, X87), _top(status)
    stack = registers[top:] + registers[:top]
    for place in range(_REGISTERS):
        at = _ST_AT + place * _SLOT
        data[at : at + _X87_SIZE] = stack[place * _X87_SIZE : (place + 1) * _X87_SIZE]
    xmm = read_file(cpu, 0, vectors)
    data[_XMM_AT : _XMM_AT + len(xmm)] = xmm
    _SOFTWARE.pack_into(data, _SOFTWARE_AT, _MAGIC_1, _SIZE + legacy * _LEGACY.size, STATES, AREA)
    struct.pack_into("<Q", data, _HEADER_AT, STATES)
    struct.pack_into("<I", data, AREA, _MAGIC_2)
    if not legacy:
        return bytes(data)
    words = (control | _UPPER_ONES, status | _UPPER_ONES, tags | _UPPER_ONES, 0, 0, 0, _UPPER_ONES)
    return _LEGACY.pack(*words, stack, status, 0) + bytes(data)


def _load(cpu: StateCpu, data: bytes, vectors: VectorFile, *, legacy: bool) -> None:
    before = _LEGACY.size if legacy else 0
    control, status, abridged = _CONTROL.unpack_from(data, before)
    tags, size, at = _whole(abridged), _SLOT, _ST_AT
    if legacy:
        control, status, tags = (word & 0xFFFF for word in struct.unpack_from("<3I", data))
        size, at = _X87_SIZE, 28
    stack = b"".join(data[at + place * size : at + place * size + _X87_SIZE] for place in range(_REGISTERS))
    bottom = len(stack) - _top(status)
    write_file(cpu, 1, X87, stack[bottom:] + stack[:bottom])
    for name, value in {"fpcw": control, "fpsw": status, "fptag": tags}.items():
        cpu.write_register(name, value)
    (mxcsr,) = struct.unpack_from("<I", data, before + _MXCSR_AT)
    cpu.write_register("mxcsr", mxcsr & _MXCSR_MASK)
    at = before + _XMM_AT
    write_file(cpu, 0, vectors, data[at : at + (vectors.last - vectors.first + 1) * _SLOT])


def _reset(cpu: StateCpu) -> None:
    """Set the registers as a program finds them at its start (fpu__clear_user_states)."""
    for file in cpu.vectors():
        file[:] = bytes(len(file))
    for name, value in {"fpsw": 0, **FLOATING_POINT}.items():
        cpu.write_register(name, value)


def frame_state(vectors: VectorFile, pointer: int, *, legacy: bool) -> FrameState:
    """Return the area of a mode of the CPU; `legacy`: that of 32-bit programs."""
    before = _LEGACY.size if legacy else 0
    return FrameState(
        size=_SIZE + before,
        unaligned=before,
        save=partial(_save, vectors=vectors, legacy=legacy),
        load=partial(_load, vectors=vectors, legacy=legacy),
        pointer=pointer,
        reset=_reset,
    )


# The vector of a page fault, and the bits of its error code (arch/x86/include/asm/trap_pf.h).
_PAGE_FAULT: Final = 14
_PRESENT, _WRITE, _USER, _FETCH = 1, 2, 4, 16
_VECTORS: Final = 0xFF


def page_fault(address: int, *, write: bool, fetch: bool, present: bool) -> Trap:
    """Return trapno, err and cr2 after an access to a page that is not mapped, or not for it."""
    error = _USER | present * _PRESENT | write * _WRITE | fetch * _FETCH
    return Trap(_PAGE_FAULT, error, address)


def exception(number: int, before: Trap) -> Trap:
    """Return the same after another exception, which leaves cr2 as it was."""
    return Trap(number & _VECTORS, 0, before.address)
