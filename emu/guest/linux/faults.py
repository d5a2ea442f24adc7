"""The CPU as Linux programs meet it: its state at the start, and its exceptions as signals.

Sources: Linux arch/x86/kernel/traps.c, arch/arm64/kernel/traps.c, arch/riscv/kernel/traps.c;
Unicorn's numbers for exceptions are those of QEMU (target/*/cpu.h).
"""

from __future__ import annotations

from typing import Final

from emu.engine.access import Access
from emu.engine.engine import Engine
from emu.guest.linux.abi.signals import (
    BUS_ADRALN,
    BUS_ADRERR,
    FPE_INTDIV,
    ILL_ILLOPC,
    SEGV_ACCERR,
    SEGV_MAPERR,
    SI_KERNEL,
    TRAP_BRKPT,
    Signal,
    SignalInfo,
)
from emu.guest.linux.space import Space
from emu.isa.base import Isa

_FLOATING_POINT: Final = {
    "aarch64": ("cpacr_el1", 3 << 20),  # FPEN: no trap
    "riscv64": ("mstatus", 1 << 13),  # FS: initial
}
_SEGV: Final = (Signal.SIGSEGV, SI_KERNEL)
_ILL: Final = (Signal.SIGILL, ILL_ILLOPC)
_BUS: Final = (Signal.SIGBUS, BUS_ADRALN)
_X86: Final = {
    0: (Signal.SIGFPE, FPE_INTDIV),
    1: (Signal.SIGTRAP, TRAP_BRKPT),
    4: _SEGV,
    5: _SEGV,
    6: _ILL,
    13: _SEGV,
    16: (Signal.SIGFPE, 0),
    17: _BUS,
    19: (Signal.SIGFPE, 0),
}
_EXCEPTIONS: Final = {
    "x86_64": _X86,
    "i386": _X86,
    "aarch64": {1: _ILL, 3: _BUS, 4: _BUS},
    "riscv64": {2: _ILL, 0: _BUS, 4: _BUS, 6: _BUS},
}


def enable_floating_point(engine: Engine) -> None:
    """Do what a kernel does before it lets programs use floating point."""
    if engine.isa.name in _FLOATING_POINT:
        engine.write_register(*_FLOATING_POINT[engine.isa.name])


def exception(isa: Isa, number: int, pc: int) -> SignalInfo:
    """Return the signal for an exception of the CPU."""
    signal, code = _EXCEPTIONS[isa.name].get(number, _SEGV)
    return SignalInfo(signal, code, address=0 if code == SI_KERNEL else pc)


def page_fault(space: Space, access: Access, address: int) -> SignalInfo:
    """Return the signal for an address that is not mapped, not for that, or past the end of a mapped file."""
    area = space.area_at(address)
    if area is None:
        return SignalInfo(Signal.SIGSEGV, SEGV_MAPERR, address=address)
    if access in area.access:
        return SignalInfo(Signal.SIGBUS, BUS_ADRERR, address=address)
    return SignalInfo(Signal.SIGSEGV, SEGV_ACCERR, address=address)
