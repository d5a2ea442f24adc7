"""Unicorn's TLB filled from an address space that the host keeps.

In this mode (UC_TLB_VIRTUAL) Unicorn asks a hook whenever an address misses its TLB, and there are
no page tables.  A refusal ends `emu_start` with the pc on the instruction that faulted; the refused
access is stored here.

Unicorn's TLB holds few pages, and Python takes microseconds to fill one.  So the answers that
Python gave are kept in a table in plain memory, where machine code finds them (`fill` in
`ir/common.ll`).  Each address space has a table of its own, so that nothing is asked again when a
process continues after another one.  An entry is two words:

     63      40 39               0      63                12 11     0
    | generation |  page number   |    | physical address   | access |

When Unicorn forgets a page, the table forgets the same; a new generation invalidates all entries.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection
from typing import Any, Final
from weakref import WeakKeyDictionary

import unicorn

from emu.engine.memory.access import Access
from emu.engine.memory.memory import HostMemory
from emu.engine.memory.pages import PAGE, AddressSpace, CodeChangesError
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.jump_cache import Jumps
from emu.engine.state import FILLS, Word
from emu.support.plain import WORD, address_of, words
from emu.support.words import WORD_MASK

_ACCESS: Final = {
    unicorn.UC_MEM_READ: Access.READ,
    unicorn.UC_MEM_WRITE: Access.WRITE,
    unicorn.UC_MEM_FETCH: Access.EXECUTE,
}
_GENERATION: Final = 1 << 40
# Rights as plain numbers: the operators of flags are Python's.
_WRITE: Final = int(Access.WRITE)
_EXECUTE: Final = int(Access.EXECUTE)
_or, _and = int.__or__, int.__and__
# With more pages than these it costs less to ask for those that are used again.
_FEW: Final = 2048
# Fills after which Unicorn's TLB is emptied for the first time, so that it grows (`grow` in ir/common.ll): twice as
# many as it has entries (QEMU accel/tcg/cputlb.c, CPU_TLB_DYN_DEFAULT_BITS).
_FIRST_GROWTH: Final = 512


class _Entry(ctypes.Structure):
    """Unicorn's uc_tlb_entry."""

    _fields_ = (("physical", ctypes.c_uint64), ("granted", ctypes.c_uint32))


_ON_FILL = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.POINTER(_Entry), ctypes.c_void_p
)


class Fills:
    """The answers for one address space."""

    def __init__(self, tlb: SoftTlb) -> None:
        self._tlb = tlb
        self._table = words(2 * FILLS)
        self.address = address_of(self._table)
        """The address of the table."""
        self.generation = _GENERATION

    def keep(self, page: int, physical: int, granted: int) -> None:
        """Store an answer for machine code."""
        if page < _GENERATION:
            place = 2 * (page % FILLS)
            self._table[place] = page | self.generation
            self._table[place + 1] = _or(physical // PAGE * PAGE, granted)

    def forget_page(self, address: int) -> None:
        """Forget the translation of a page."""
        page = address // PAGE
        place = 2 * (page % FILLS)
        known, granted = self._table[place], self._table[place + 1]
        # It may have been executed, and then have lost its place to another page.
        code = bool(granted & _EXECUTE) if known == page | self.generation else known != 0
        self._table[place] = 0
        self._tlb.changed_page(self, address, code=code)

    def forbid_writing(self, pages: Collection[int]) -> None:
        """Forget that these pages can be written."""
        if len(pages) > _FEW:
            self.forget_all()
            return
        table, generation = self._table, self.generation
        for page in pages:
            place = 2 * (page % FILLS)
            if table[place] == page | generation:
                table[place + 1] &= ~_WRITE
        self._tlb.changed(self)

    def forget_all(self) -> None:
        """Forget all translations."""
        self.generation = self.generation + _GENERATION & WORD_MASK
        if not self.generation:
            ctypes.memset(self.address, 0, 2 * FILLS * WORD)
            self.generation = _GENERATION
        self._tlb.changed(self)

    def copy_to(self, other: Fills, pages: Collection[int]) -> None:
        """Give another address space the answers for these pages, unless there are many."""
        if len(pages) > _FEW:
            return
        table, theirs, generation = self._table, other._table, self.generation
        for page in pages:
            place = 2 * (page % FILLS)
            if table[place] == page | generation:
                theirs[place], theirs[place + 1] = page | other.generation, table[place + 1]


class SoftTlb:
    """The TLB of one engine; `nowhere` is the address that emu_start looks up when it ends."""

    def __init__(self, cpu: Cpu, memory: HostMemory, nowhere: int, state: memoryview[int]) -> None:
        cpu.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        self.missed: tuple[int, Access] | None = None
        """The access that was refused last."""
        self.failure: BaseException | None = None
        """The exception of the hook itself, since none may leave it."""
        self.change: Callable[[int], object] | None = None
        """What is to be done before the run goes on; None: nothing."""
        self._flush_page, self._flush = cpu.flush_page, cpu.flush_tlb
        untagged = cpu.model.untagged
        self._tags = {0}
        """What programs have written into the ignored bits of addresses."""
        self._state = state
        self.jumps = Jumps(cpu, state)
        """The blocks to which jumps lead, in this address space."""
        self._known: WeakKeyDictionary[AddressSpace, Fills] = WeakKeyDictionary()
        self._current = Fills(self)
        self.use(memory.space)

        def fill(_uc: int, address: int, kind: int, entry: Any, _data: int) -> bool:
            access = _ACCESS[kind]
            if access is not Access.EXECUTE:
                tagged, address = address, untagged(address)
                self._tags.add(tagged - address)
            try:
                found = memory.space.look_up(address, access)
            except CodeChangesError as error:
                self.change = error.change
                return False
            except BaseException as error:  # noqa: BLE001  raised again by Running
                self.failure = error
                found = None
            if found is None:
                # emu_start looks `nowhere` up with the pc elsewhere; a jump there is the program's own, and a fault.
                ended = address // PAGE == nowhere // PAGE != int(cpu.pc_word.value) // PAGE
                if access is Access.EXECUTE and ended:
                    found = (0, Access.EXECUTE)
                else:
                    self.missed = (address, access)
                    return False
            else:
                if _and(found[1], _EXECUTE):
                    memory.executed[found[0] // PAGE] = 1
                self._current.keep(address // PAGE, *found)
            entry[0].physical, entry[0].granted = found
            return True

        self.callback = _ON_FILL(fill)
        """The hook in Python, for UC_HOOK_TLB_FILL."""

    def of(self, space: AddressSpace) -> Fills:
        """Return the answers for an address space."""
        known = self._known.get(space)
        if known is None:
            known = self._known[space] = Fills(self)
        return known

    def forget(self, space: AddressSpace) -> None:
        """Forget an address space that is used no more."""
        self._known.pop(space, None)

    def use(self, space: AddressSpace) -> None:
        """Change to another address space."""
        self._current = self.of(space)
        self._state[Word.FILLS] = self._current.address
        self.changed(self._current)

    def changed_page(self, fills: Fills, address: int, *, code: bool) -> None:
        """Make Unicorn forget a page, if it belongs to the current address space.

        `code`: it may have code.
        """
        if fills is self._current:
            for tag in self._tags:
                self._flush_page(address | tag)
            if code:
                self.jumps.forget()

    def changed(self, fills: Fills) -> None:
        """Make Unicorn forget all pages, if they belong to the current address space."""
        if fills is self._current:
            self._state[Word.GENERATION] = fills.generation
            self._restart()
            self._flush()
            self.jumps.forget()

    def flush_page(self, address: int) -> None:
        """Forget the translation of a page of the current address space."""
        self._current.forget_page(address)

    def _restart(self) -> None:
        """Set the count of fills to 0: the TLB is empty."""
        self._state[Word.FILLED], self._state[Word.FILLED_MAX] = 0, _FIRST_GROWTH
