"""The blocks to which jumps lead: a table that is faster than QEMU's.

A translated block that ends with an indirect jump, or with a jump to another page, calls
`helper_lookup_tb_ptr`, which returns the machine code of the block at the pc. QEMU keeps the
blocks of a page in 64 places by the lower bits of their addresses, so that those of a large
function displace each other; and each call compares five fields of a block's description. That
takes a third of the time of an interpreter.

So when the count is written into a new block (`emu.engine.qemu.inlined_count`), its calls of the
helper are replaced by jumps to `go_on` (`ir/jumps.ll`), which has a table of its own: an entry is a
pc and the address of the block's machine code, to which it jumps. Two entries are the pair of all
addresses with the same lower bits: with one entry, some jumps of a hot loop displaced each other,
which was 2.5 % of Python's jumps on i386, and with pairs it is 0.05 %. What is not in the table is
asked of the helper. The whole table holds or does not hold:

| what makes it invalid | how that is noticed |
| --- | --- |
| a block is dropped, because its code was written | QEMU counts such blocks |
| QEMU drops all blocks | the next new block begins at the start of its memory again |
| a page with code is mapped elsewhere, or another address space is used | `emu.engine.qemu.tlb` says so |
| the CPU's mode changes, so that QEMU translates otherwise | the ISA's `translation_key`; or \
`emu.engine.qemu.cpu` says that a register was written |

A guest with page tables can change its mappings unseen, so only guests whose address space the
host keeps have such a table.

The offset of QEMU's count in the translator's context is read from the function that returns it.
Where that has other instructions, QEMU's helper is called as before.

Source: Unicorn 2.1.4, qemu/include/exec/tb-lookup.h, exec/tb-hash.h, qemu/accel/tcg/translate-all.c
(do_tb_phys_invalidate, do_tb_flush), qemu/tcg/tcg.c (tcg_tb_phys_invalidate_count).
"""

from __future__ import annotations

import ctypes
import re
from typing import Final

from emu.engine.memory.pages import PAGE
from emu.engine.qemu import rewriters
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.inlined_count import ASKED_BLOCK, GO_ON
from emu.engine.qemu.temporaries import context
from emu.engine.state import NEVER, Word
from emu.support.plain import WORD, address_of, function_address, words

# A count that QEMU does not reach.
FORGOTTEN: Final = NEVER
# Entries, a power of two: the jumps of a large interpreter have some thousands of targets.
ENTRIES: Final = 1 << 13
# Bytes of a pair of entries.
_PAIR: Final = 32
# mov COUNT(%rdi),%rax    ret
_COUNT: Final = re.compile(rb"\x48\x8b\x87(....)\xc3", re.DOTALL)
_COUNT_SIZE: Final = 8

NAMES: Final = {
    "FORGOTTEN": FORGOTTEN,
    "JUMPS_ENTRIES": ENTRIES,
    "JUMPS_MASK": ENTRIES // 2 - 1,
    # The lower bits of the page number are mixed into the index.
    "JUMPS_PAGE": PAGE.bit_length() - 1,
    # An address that belongs to the second pair.
    "JUMPS_SECOND": 4,
    # The largest distance from a block's start to its call of the hook, and to its description before it; its size.
    "JUMPS_HEAD": 32,
    "JUMPS_DESCRIPTION": 512,
    "JUMPS_LONGEST": 1 << 16,
    "JUMPS_STUB": GO_ON,
    "JUMPS_ASK": ASKED_BLOCK,
}


class Jumps:
    """The table of one engine; `state`: the engine's words."""

    def __init__(self, cpu: Cpu, state: memoryview[int]) -> None:
        self._state = state
        self.forget()
        count = invalidations(cpu) if rewriters.runs(rewriters.JUMP_CACHE) else None
        if count is not None:
            self._table = words(2 * ENTRIES + _PAIR // WORD)
            state[Word.INVALIDATIONS] = count
            state[Word.JUMPS] = -(-address_of(self._table) // _PAIR) * _PAIR

    def forget(self) -> None:
        """Forget all jumps."""
        self._state[Word.INVALIDATED] = FORGOTTEN


def invalidations(cpu: Cpu) -> int | None:
    """Return the address of QEMU's count of dropped blocks; None if its offset is not known."""
    code = ctypes.string_at(function_address(cpu.function("tcg_tb_phys_invalidate_count")), _COUNT_SIZE)
    found = _COUNT.fullmatch(code)
    return None if found is None else context(cpu.handle) + int.from_bytes(found[1], "little")
