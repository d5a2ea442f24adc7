"""Blocks that lead to one block in another page: they jump there.

QEMU connects a block with the next one by a jump only inside a page, since it cannot know whether
another page is still the same.  So a branch, call or end of a block that leads to another page asks
for the next block each time (`emu.engine.qemu.jump_cache`).  That is a third of all that a large
interpreter asks.  When such an end is executed for the first time, its machine code is replaced:

    what `emu.engine.qemu.jump_cache` has made           what replaces it

    movq $pc,PC(%rbp)                          cmpl $count,COUNT(%rbp)
    mov  %rbp,%rdi                             je   the next block
    call linked_block                          call stale_block
    jmp  *%rax

or, for a pc that does not fit into a signed number of 32 bits, in up to 27 bytes,

    movabs $pc,%rbx                            the same
    mov  %rbx,PC(%rbp)
    mov  %rbp,%rdi
    call linked_block
    jmp  *%rax

COUNT is QEMU's count of dropped blocks, which `Jumps.forget` also increments, so the jump holds as
long as the table of jumps would.  It needs no pc: QEMU stores none before its own jumps.  If the
count has changed, `stale_block` looks up the pc of this end, asks again, and stores the new count
and the new block.  An end that is asked about often, because processes take turns, gets its old
code back, with a jump to `go_on`.

The mode of the CPU is not compared, unlike in the table: a block belongs to one mode, and no
instruction that changes it has such an end.
"""

from __future__ import annotations

import ctypes
from enum import IntEnum
from typing import Final

from emu.engine.state import Word
from emu.support.plain import address_of, words

# Entries of the table, a power of two, and bytes of one.
ENTRIES: Final = 1 << 15
ENTRY: Final = 64
# An end that was asked about so often is not linked any more.
OFTEN: Final = 16
# Bytes of a jump, from its comparison to the end of its call.
JUMP: Final = 21
# The offset of the count is a signed number of so many bits.
_OFFSET: Final = 32
_WORD: Final = 8


class Entry(IntEnum):
    """The places of the parts of an entry."""

    START = 0
    """The address of an end; 0: the entry is free."""
    PC = 8
    """The address of the guest to which it leads."""
    TIMES = 16
    """How often it was asked about."""
    CALL_END = 24
    """The bytes from its start to the end of its call."""
    ORIGINAL = 32
    """Its old code, where the jump is now."""


def forget_all(state: memoryview[int]) -> None:
    """Forget the ends of an engine.

    All its blocks must be dropped: an end that exists needs its entry.
    """
    if state[Word.LINKS]:
        ctypes.memset(state[Word.LINKS], 0, ENTRIES * ENTRY)


class Links:
    """The linked ends of one engine.

    `count`: the address of QEMU's count of dropped blocks; `env`: that of the CPU state; `state`:
    the engine's words.  If they are too far from each other, no end is linked.
    """

    def __init__(self, count: int, env: int, state: memoryview[int]) -> None:
        offset = count - env
        if offset.bit_length() < _OFFSET:
            self._table = words(ENTRIES * ENTRY // _WORD)
            state[Word.LINK_OFFSET] = offset % (1 << 64)
            state[Word.LINKS] = address_of(self._table)
