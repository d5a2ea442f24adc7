"""stack() and caller in machine code; the guest finds the pcs.

`trapline.framework.stacks` says which frames a probe shows.  Machine code is asked for those of
probes in functions alone: their callers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.native.builder import Callee, Function
from emu.native.values import Word
from emu.words import WORD_MASK

_WORD_SHIFT: Final = 3
# The guest does not know.
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
    place = f.room(8)
    f.store(place, 0)
    count = f.call(Callee("kernel_callers"), place, 1)
    with f.when(f.eq(count, UNKNOWN), likely=False):
        f.ret(slow())
    f.ret(f.load(place))
