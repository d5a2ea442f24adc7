"""The slots in which a real kernel executes the instructions that its uprobes displace.

The kernel writes an instruction into a slot through its own mapping of the page, which may not be
executed, and so Unicorn does not notice that the code of the slot has changed.  A breakpoint at
the function that writes makes Unicorn forget the page.

Source: Linux 6.12 kernel/events/uprobes.c (arch_uprobe_copy_ixol).
"""

from __future__ import annotations

from typing import Final

from emu.bad_address import BadAddressError
from emu.engine.pages import PAGE
from emu.frame import Frame
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from providers.linux_kernel.sites import LONGEST, entry_site
from providers.linux_kernel.text import Hook, Text

_FUNCTION: Final = "arch_uprobe_copy_ixol"


class Slots:
    """Watches the slots of one kernel."""

    def __init__(self, guest: LinuxKernelGuest, text: Text) -> None:
        self._guest = guest
        self._page_size = guest.facts.btf.struct_size("page")
        self._first_page: int | None = None
        """The address of the struct page of physical address 0, if it had one; None: not known."""
        symbol = guest.facts.symbols.get(_FUNCTION)
        site = entry_site(text.isa, text.code(symbol.value, 3 * LONGEST), symbol.value) if symbol is not None else None
        if site is not None:
            text.add(site[0], Hook(self._written))

    def _written(self, frame: Frame) -> None:
        """Forget the page of a slot: the arguments are its struct page, and the slot's address."""
        page, address = frame.arguments()[:2]
        physical = self._physical(page, address)
        if physical is not None:
            self._guest.engine.forget_code(physical, PAGE)

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
