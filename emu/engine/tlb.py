"""Unicorn's TLB filled from an address space that the host keeps.

In this mode (UC_TLB_VIRTUAL) Unicorn asks a hook whenever an address misses its TLB, and there are
no page tables.  A refusal ends `emu_start` with the pc on the instruction that faulted; what it was
after is remembered here.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import unicorn

from emu.engine.access import Access
from emu.engine.cpu import Cpu
from emu.engine.pages import PAGE

if TYPE_CHECKING:
    from emu.engine.memory import HostMemory

_ACCESS: Final = {
    unicorn.UC_MEM_READ: Access.READ,
    unicorn.UC_MEM_WRITE: Access.WRITE,
    unicorn.UC_MEM_FETCH: Access.EXECUTE,
}


class _Entry(ctypes.Structure):
    """Unicorn's uc_tlb_entry."""

    _fields_ = (("physical", ctypes.c_uint64), ("granted", ctypes.c_uint32))


_ON_FILL = ctypes.CFUNCTYPE(
    ctypes.c_bool, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.POINTER(_Entry), ctypes.c_void_p
)


class SoftTlb:
    """The TLB of one engine; `nowhere` is the address that emu_start looks up when it ends."""

    def __init__(self, cpu: Cpu, memory: HostMemory, nowhere: int) -> None:
        cpu.uc.ctl_set_tlb_mode(unicorn.UC_TLB_VIRTUAL)
        self.missed: tuple[int, Access] | None = None
        """What the latest refusal was about."""
        self.failure: BaseException | None = None
        """What went wrong in the hook itself: nothing may get out of there."""
        self._cpu = ctypes.c_void_p(cpu.address)
        self._flush_page = cpu.function("tlb_flush_page")
        self._flush = cpu.function("tlb_flush")

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
            entry[0].physical, entry[0].granted = found
            return True

        self.callback = _ON_FILL(fill)
        """The hook, for UC_HOOK_TLB_FILL."""

    def flush_page(self, address: int) -> None:
        """Forget what a page's address means."""
        self._flush_page(self._cpu, ctypes.c_uint64(address))

    def flush(self) -> None:
        """Forget what all addresses mean."""
        self._flush(self._cpu)
