"""Unicorn's TLB filled from an address space that the host keeps.

In this mode (UC_TLB_VIRTUAL) Unicorn asks a hook whenever an address misses its TLB, and there are
no page tables.  A refusal ends `emu_start` with the pc on the instruction that faulted; the refused
access is stored here.

Unicorn's TLB holds few pages, and Python takes microseconds to fill one.  So the answers that
Python gave are kept in a table in plain memory, where machine code finds them (`fill` in
`ir/common.ll`). An entry is two words:

     63      40 39               0      63                12 11     0
    | generation |  page number   |    | physical address   | access |

When Unicorn forgets a page, or all pages, the table forgets the same: a new generation invalidates
all entries.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import unicorn

from emu.engine.access import Access
from emu.engine.cpu import Cpu
from emu.engine.memory import HostMemory
from emu.engine.pages import PAGE
from emu.engine.state import Word
from emu.words import WORD_MASK

_ACCESS: Final = {
    unicorn.UC_MEM_READ: Access.READ,
    unicorn.UC_MEM_WRITE: Access.WRITE,
    unicorn.UC_MEM_FETCH: Access.EXECUTE,
}
# Entries of the table, a power of two: 64 MiB of pages.
FILLS: Final = 1 << 14
_GENERATION: Final = 1 << 40
# Fills after which Unicorn's TLB is emptied for the first time, so that it grows (`grow` in ir/common.ll): twice as
# many as it has entries (QEMU accel/tcg/cputlb.c, CPU_TLB_DYN_DEFAULT_BITS).
_FIRST_GROWTH: Final = 512


class _Entry(ctypes.Structure):
    """Unicorn's uc_tlb_entry."""

    _fields_ = (("physical", ctypes.c_uint64), ("granted", ctypes.c_uint32))


_ON_FILL = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.POINTER(_Entry), ctypes.c_void_p
)


class SoftTlb:
    """The TLB of one engine; `nowhere` is the address that emu_start looks up when it ends."""

    def __init__(self, cpu: Cpu, memory: HostMemory, nowhere: int, state: memoryview[int]) -> None:
        cpu.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        self.missed: tuple[int, Access] | None = None
        """What the latest refusal was about."""
        self.failure: BaseException | None = None
        """What went wrong in the hook itself: nothing may get out of there."""
        self._cpu = ctypes.c_void_p(cpu.address)
        self._flush_page = cpu.function("tlb_flush_page")
        self._flush = cpu.function("tlb_flush")
        self._state = state
        self._array = (ctypes.c_uint64 * (2 * FILLS))()
        self._table = memoryview(self._array).cast("B").cast("Q")
        self.table = ctypes.addressof(self._array)
        """Where the answers are kept."""
        self._state[Word.GENERATION] = _GENERATION
        self._restart()

        def fill(_uc: int, address: int, kind: int, entry: Any, _data: int) -> bool:
            access = _ACCESS[kind]
            try:
                found = memory.space.look_up(address, access)
            except BaseException as error:  # noqa: BLE001  raised again by Engine.run
                self.failure = error
                found = None
            if found is None:
                if address // PAGE == nowhere // PAGE:
                    found = (0, Access.READ | Access.EXECUTE)
                else:
                    self.missed = (address, access)
                    return False
            else:
                self._keep(address // PAGE, *found)
            entry[0].physical, entry[0].granted = found
            return True

        self.callback = _ON_FILL(fill)
        """The hook in Python, for UC_HOOK_TLB_FILL."""

    def _keep(self, page: int, physical: int, granted: Access) -> None:
        """Store an answer for machine code."""
        if page < _GENERATION:
            place = 2 * (page % FILLS)
            self._table[place] = page | self._state[Word.GENERATION]
            self._table[place + 1] = physical // PAGE * PAGE | granted

    def flush_page(self, address: int) -> None:
        """Forget the translation of a page."""
        self._table[2 * (address // PAGE % FILLS)] = 0
        self._flush_page(self._cpu, ctypes.c_uint64(address))

    def flush(self) -> None:
        """Forget all translations."""
        generation = self._state[Word.GENERATION] + _GENERATION & WORD_MASK
        if not generation:
            ctypes.memset(self.table, 0, ctypes.sizeof(self._array))
        self._state[Word.GENERATION] = generation or _GENERATION
        self._restart()
        self._flush(self._cpu)

    def _restart(self) -> None:
        """Set the count of fills to 0: the TLB is empty."""
        self._state[Word.FILLED], self._state[Word.FILLED_MAX] = 0, _FIRST_GROWTH
