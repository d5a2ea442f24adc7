"""Blocks whose translation would overflow QEMU's table of temporaries: they end sooner.

A block has up to 512 instructions, and QEMU's translator up to 512 temporaries for it
(TCG_MAX_TEMPS in include/tcg/tcg.h).  An instruction frees those that it takes, or the next one has
fewer.  On x86 all x87 instructions and those of SSE with an immediate keep one or two
(target/i386/translate.c, disas_insn), and nothing tests the end of the table: about 240 of them
without a branch, as compilers write them where constants are stored, overwrite what is behind it,
and end the host's process.

The translator ends a block when it has enough operations (tcg_op_buf_full).  So before an
instruction, when the table is filling, the number of operations is set to that: this instruction is
the block's last.  The number is used for nothing else (tcg/tcg.c, nb_ops).
"""

from __future__ import annotations

import ctypes
from typing import Final

from emu.engine.qemu.layout import UC_TCG, word
from emu.isa.unicorn_model import MOST_TEMPORARIES, Leaking

# Operations with which a block ends (tcg_op_buf_full in include/tcg/tcg.h).
ENOUGH: Final = 4000


def context(handle: int) -> int:
    """Return the address of an engine's context for translation (TCGContext)."""
    return word(handle + UC_TCG)


class Temporaries:
    """The table of one engine; `emu.engine.qemu.code_hooks_code` does the same in machine code."""

    def __init__(self, handle: int, leaking: Leaking) -> None:
        here = context(handle)
        self._used = ctypes.c_int32.from_address(here + leaking.temporaries)
        self._operations = ctypes.c_int32.from_address(here + leaking.operations)

    def leave_room(self) -> None:
        """Make the instruction that is about to be translated the last, if the table is filling."""
        if self._used.value > MOST_TEMPORARIES:
            self._operations.value = ENOUGH
