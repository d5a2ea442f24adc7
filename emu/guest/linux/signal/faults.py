"""Exceptions of the CPU as signals.

Sources: Linux arch/x86/kernel/traps.c, arch/arm64/kernel/traps.c, arch/riscv/kernel/traps.c.
"""

from __future__ import annotations

from emu.engine.memory.access import Access
from emu.guest.linux.mm.address_space import Space
from emu.isa.base import Isa
from emu.isa.linux_abi import GENERAL_PROTECTION
from emu.isa.linux_signals import BUS_ADRERR, SEGV_ACCERR, SEGV_MAPERR, SI_KERNEL, Signal, SignalInfo


def exception(isa: Isa, number: int, pc: int) -> SignalInfo:
    """Return the signal for an exception of the CPU."""
    signal, code = isa.linux.faults.get(number, GENERAL_PROTECTION)
    return SignalInfo(signal, code, address=0 if code == SI_KERNEL else pc)


def page_fault(space: Space, access: Access, address: int) -> SignalInfo:
    """Return the signal for an access that the page tables refuse.

    The address is not mapped, not mapped for such an access, or past the end of a mapped file.
    """
    area = space.area_at(address)
    if area is None:
        return SignalInfo(Signal.SIGSEGV, SEGV_MAPERR, address=address)
    if access in area.access:
        return SignalInfo(Signal.SIGBUS, BUS_ADRERR, address=address)
    return SignalInfo(Signal.SIGSEGV, SEGV_ACCERR, address=address)
