"""The stack of a user program, walked by frame pointers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.memory.pages import PAGE
from emu.guest.base import Location
from emu.isa.base import Isa
from emu.support.bad_address import BadAddressError

# The largest number of frames of a stack.
DEEPEST: Final = 512


def user_stack(
    frame: Frame, isa: Isa, load: Callable[[int], int], located: Location | None, *, leaves_save_pointer: bool = False
) -> list[int]:
    """Return the pcs of a stack, innermost first.

    `load(address)` reads a word, or raises `BadAddressError`; the walk ends there.  `located` names
    the pc: on the first instruction of a function the frame is still the caller's, and the return
    address of the function is where the call has put it.  `leaves_save_pointer`: on RISC-V a
    function that calls no other saves only its caller's frame pointer, in the place where others
    save ra.
    """
    registers, calling = isa.registers, isa.calling
    pc, pointer = frame.register(registers.pc), frame.register(registers.fp)
    pcs = [pc]
    try:
        if located is not None and located.symbol and not located.offset:
            pcs.append(frame.register(registers.link) if registers.link else frame.stack_word(0))
        sp = frame.register(registers.sp)
        while len(pcs) < DEEPEST and pointer >= sp and not pointer % isa.word:
            address, following = load(pointer + calling.frame_return), load(pointer + calling.frame_next)
            first = leaves_save_pointer and len(pcs) == 1
            if first and registers.link and pointer < address < pointer + DEEPEST * PAGE:
                address, following = frame.register(registers.link), address
            if not address:
                break
            pcs.append(address)
            if following <= pointer:
                break
            sp = pointer = following
    except BadAddressError:
        pass
    return pcs
