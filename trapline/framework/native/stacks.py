"""stack(), ustack() and their variables in machine code; the guest finds the pcs.

`trapline.framework.base.stacks` defines the frames that a probe shows.  Machine code finds only
those of probes in functions: their callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.native.builder import Callee, Function
from emu.native.operations import Word
from emu.support.words import WORD_MASK

_WORD: Final = 8
_WORD_SHIFT: Final = 3
# The number of frames for which there is room: more than a kernel's stack has, and as many as the longest user stack
# has.
_KERNEL_FRAMES: Final = 1024
_USER_FRAMES: Final = 512
# Instructions that are remembered, as a power of two, and the bytes of an entry: pc, place, code, answer.
STARTS_BITS: Final = 8
START_SIZE: Final = 4 * _WORD
# The result of the guest if it does not know.
UNKNOWN: Final = WORD_MASK


def write_stack(f: Function) -> None:
    """Write `stack(place, limit)`: put callers and zeroes to a place; 0: Python has to do it."""
    place, limit = f.parameters
    count = f.call(Callee("kernel_callers"), place, limit)
    f.ret_if(f.eq(count, UNKNOWN), 0)
    start = f.add(place, f.shl(count, _WORD_SHIFT))
    f.fill(start, 0, f.shl(f.sub(limit, count), _WORD_SHIFT))
    f.ret(1)


def write_caller(f: Function, slow: Callable[[], Word]) -> None:
    """Write `caller`: the first of the callers, 0 if there is none."""
    place = f.buffer(8)
    f.store(place, 0)
    count = f.call(Callee("kernel_callers"), place, 1)
    with f.when(f.eq(count, UNKNOWN), likely=False):
        f.ret(slow())
    f.ret(f.load(place))


def write_depth(f: Function, slow: Callable[[], Word]) -> None:
    """Write `stackdepth`, the number of callers; Python counts very many."""
    count = f.call(Callee("kernel_callers"), f.buffer(_WORD * _KERNEL_FRAMES), _KERNEL_FRAMES)
    with f.when(f.uge(count, _KERNEL_FRAMES), likely=False):
        f.ret(slow())
    f.ret(count)


def write_user_start(f: Function, slow: Callable[[], Word]) -> None:
    """Write `user_start(pc)`: whether a function begins there.

    Python answers once for each instruction: answers are stored with the pc, with the instruction's
    place in this process, and with its bytes, so that they are not used for another program.
    """
    (pc,) = f.parameters
    place = f.call(Callee("user_pointer"), f.and_(pc, -_WORD), _WORD)
    with f.when(f.eq(place, 0), likely=False):
        f.ret(slow())
    code = f.load(place)
    index = f.and_(f.xor(pc, f.lshr(pc, STARTS_BITS)), (1 << STARTS_BITS) - 1)
    entry = f.add(f.module.symbol("starts"), f.mul(index, START_SIZE))
    same = f.both(f.eq(f.load(entry), pc), f.eq(f.load(entry, _WORD), place))
    with f.when(f.both(same, f.eq(f.load(entry, 2 * _WORD), code)), likely=True):
        f.ret(f.load(entry, 3 * _WORD))
    answer = slow()
    for number, word in enumerate((pc, place, code, answer)):
        f.store(entry, word, _WORD * number)
    f.ret(answer)


def write_user_stack(f: Function) -> None:
    """Write `ustack(place, limit)`: put the pid, pcs and zeroes to a place; 0: Python has to do it."""
    place, limit = f.parameters
    first = f.add(place, _WORD)
    count = f.call(Callee("user_callers"), first, limit)
    f.ret_if(f.eq(count, UNKNOWN), 0)
    f.store(place, f.call(Callee("pid")))
    f.fill(f.add(first, f.shl(count, _WORD_SHIFT)), 0, f.shl(f.sub(limit, count), _WORD_SHIFT))
    f.ret(1)


def write_user_caller(f: Function, slow: Callable[[], Word]) -> None:
    """Write `ucaller`: the second pc, 0 if there is none."""
    place = f.buffer(2 * _WORD)
    f.store(place, 0, _WORD)
    count = f.call(Callee("user_callers"), place, 2)
    with f.when(f.eq(count, UNKNOWN), likely=False):
        f.ret(slow())
    f.ret(f.load(place, _WORD))


def write_user_depth(f: Function, slow: Callable[[], Word]) -> None:
    """Write `ustackdepth`, if the ISA has it."""
    count = f.call(Callee("user_callers"), f.buffer(_WORD * _USER_FRAMES), _USER_FRAMES)
    with f.when(f.eq(count, UNKNOWN), likely=False):
        f.ret(slow())
    f.ret(count)
