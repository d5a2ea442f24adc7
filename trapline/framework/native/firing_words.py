"""The words of a firing, which machine code and Python share: another form of dtrace_mstate_t.

Python's own form is `trapline.framework.base.context.Context`; an upcall copies the one to the
other.
"""

from __future__ import annotations

import ctypes
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.native.block import WORD_SIZE, Block
from trapline.framework.base.dif import TUPLE_REGISTERS

# A time that has not been read yet; -1 as a word.
UNREAD: Final = (1 << 64) - 1
# Bytes of an entry of the tuple stack: the value, and the size, which is 0 for what is not a reference.
ENTRY: Final = 16
# Index of the flags in the words of the CPU's core.
FLAGS_OFFSET: Final = WORD_SIZE * CoreWord.FLAGS


class Firing(Block):
    """The state of the current firing, for the machine code of one consumer's clauses."""

    fault_offset: int
    """Byte offset of the DIF instruction that faulted."""
    arguments: int
    """Address of the five arguments."""
    epid: int
    cpu: int
    timestamp: int
    walltimestamp: int
    scratch_base: int
    scratch_pointer: int
    scratch_end: int
    strtok: int
    strtok_limit: int
    depth: int
    """Entries on the tuple stack."""
    fresh: int
    """1 until Python's context was prepared for this firing."""
    room: int
    """The place of the record in a speculation's buffer."""
    text: int
    """Address in this process of the string that was found last; 0: unknown."""


def tuple_stack() -> ctypes.Array[ctypes.c_uint64]:
    """Return room for the tuple stack: pairs of value and size.

    The code that pushes checks the room; one additional entry keeps an error harmless.
    """
    return (ctypes.c_uint64 * (2 * (TUPLE_REGISTERS + 1)))()
