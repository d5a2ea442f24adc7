"""The pages of programs' code that a running kernel fills through another mapping.

A kernel writes code into a page through its linear map, which may not be executed.  Unicorn notices
only the first such store into a page that it has translated: the rest of the code of the page's
previous owner would still run at the same addresses.  That is what happens to the copies of pages
that uprobes make, and to the slots in which a kernel executes displaced instructions.

So the engine stops before two of the kernel's functions, and forgets the page of their arguments.
The kernel's text does not change.

Source: Linux 6.12 kernel/events/uprobes.c (arch_uprobe_copy_ixol), mm/rmap.c
(folio_add_new_anon_rmap), include/linux/mm.h (VM_EXEC), include/linux/vmalloc.h (struct vm_struct).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.engine.engine import Engine
from emu.engine.memory.pages import PAGE
from emu.guest.linux_kernel.files.btf import BtfError
from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.tasks import Tasks
from emu.support.words import BadAddressError

_WORD: Final = 8
_VM_EXEC: Final = 4
# Its arguments are the struct page of a slot, and the slot's address in the process.
_SLOT_WRITTEN: Final = "arch_uprobe_copy_ixol"
# The bytes of a slot that are used: the longest instruction, and a breakpoint.
_SLOT: Final = 20
# Its arguments are the new page of a process, which has been filled, and its vm_area_struct.
_PAGE_ADDED: Final = "folio_add_new_anon_rmap"


class CodePages:
    """Watches the pages of one kernel."""

    def __init__(self, engine: Engine, facts: KernelFacts, tasks: Tasks) -> None:
        """Watch from now on."""
        self._engine = engine
        self._tasks = tasks
        btf = facts.btf
        try:
            self._stack_area_at = btf.offset("task_struct", "stack_vm_area")
            self._address_at, self._pages_at = btf.offset("vm_struct", "addr"), btf.offset("vm_struct", "pages")
            self._flags_at = btf.offset("vm_area_struct", "vm_flags")
        except BtfError:
            return  # a kernel whose stacks are not mapped page by page
        self._page_size = btf.struct_size("page")
        self._first_page: int | None = None
        """The address of the struct page of physical address 0, if it had one; None: not known."""
        for name, written in ((_SLOT_WRITTEN, self._slot_written), (_PAGE_ADDED, self._page_added)):
            symbol = facts.symbols.get(name)
            if symbol is not None:
                self._watch(symbol.value, written)

    def _watch(self, function: int, written: Callable[[int, int], None]) -> None:
        engine = self._engine
        first, second = engine.isa.calling.arguments[:2]

        def called() -> None:
            engine.pc = function  # the CPU keeps it up to date at jumps alone
            written(engine.read_register(first), engine.read_register(second))

        engine.code.on_code(function, called)
        physical = engine.memory.translate(function)
        if physical is not None:
            engine.code.forget(physical, 1)  # it may have run already, and its translation does not call

    def _slot_written(self, page: int, address: int) -> None:
        physical = self._physical(page)
        if physical is not None:
            offset = address % PAGE
            self._engine.code.forget_instruction(physical + offset, address, min(_SLOT, PAGE - offset))

    def _page_added(self, page: int, area: int) -> None:
        if self._engine.load(area + self._flags_at, _WORD) & _VM_EXEC:
            physical = self._physical(page)
            if physical is not None:
                self._engine.code.forget(physical, PAGE)

    def _physical(self, page: int) -> int | None:
        """Return the physical address of a page by its struct page, None if that is not known."""
        if self._first_page is None:
            self._first_page = self._page_zero()
        return None if self._first_page is None else (page - self._first_page) // self._page_size * PAGE

    def _page_zero(self) -> int | None:
        """Return the address of the first struct page: by the stack of the current task.

        The kernel has a list of the struct pages of that stack, and its page tables have the same
        pages' physical addresses.
        """
        engine = self._engine
        try:
            area = engine.load(self._tasks.current() + self._stack_area_at, _WORD)
            page = engine.load(engine.load(area + self._pages_at, _WORD), _WORD)
            physical = engine.memory.translate(engine.load(area + self._address_at, _WORD))
        except BadAddressError:
            return None
        return None if physical is None else page - physical // PAGE * self._page_size
