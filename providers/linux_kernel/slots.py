"""The slots in which a real kernel executes the instructions that its uprobes displace.

The kernel writes an instruction into a slot through its own mapping of the page, which may not be
executed, and so Unicorn does not notice that the code of the slot has changed.  A function that the
engine calls before the kernel's function that writes makes Unicorn forget the page; the kernel's
text does not change.

Source: Linux 6.12 kernel/events/uprobes.c (arch_uprobe_copy_ixol).
"""

from __future__ import annotations

from typing import Final

from emu.bad_address import BadAddressError
from emu.engine.pages import PAGE
from emu.guest.linux_kernel.guest import LinuxKernelGuest

_FUNCTION: Final = "arch_uprobe_copy_ixol"


class Slots:
    """Watches the slots of one kernel."""

    def __init__(self, guest: LinuxKernelGuest) -> None:
        """Watch from now on; the function has not been called since the start or the snapshot."""
        self._guest = guest
        self._page_size = guest.facts.btf.struct_size("page")
        self._first_page: int | None = None
        """The address of the struct page of physical address 0, if it had one; None: not known."""
        symbol = guest.facts.symbols.get(_FUNCTION)
        if symbol is not None:
            self._function = symbol.value
            guest.engine.on_code(symbol.value, self._written)

    def _written(self) -> None:
        """Forget the page of a slot: the arguments are its struct page, and the slot's address."""
        engine = self._guest.engine
        engine.pc = self._function  # the CPU keeps it up to date at jumps alone
        page, address = map(engine.read_register, engine.isa.calling.arguments[:2])
        physical = self._physical(page, address)
        if physical is not None:
            engine.forget_code(physical, PAGE)

    def _physical(self, page: int, address: int) -> int | None:
        """Return the physical address of a page; None: it was never executed, and no other either."""
        if self._first_page is None:
            try:
                root = self._guest.tasks.user_root()
                found = None if root is None else self._guest.engine.memory.translate(address, root)
            except BadAddressError:
                found = None
            if found is None:
                return None
            self._first_page = page - found // PAGE * self._page_size
        return (page - self._first_page) // self._page_size * PAGE
