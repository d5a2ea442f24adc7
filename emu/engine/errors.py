"""The errors of an engine."""

from __future__ import annotations

from emu.engine.memory.access import Access


class EngineError(Exception):
    """The CPU emulator cannot do what was requested; the message says why, and names the remedy."""


class GuestCrashError(EngineError):
    """The CPU cannot continue: it left RAM, or an exception had no handler. `pc` is where."""

    def __init__(self, message: str, pc: int) -> None:
        super().__init__(message)
        self.pc = pc


def shut_down(pc: int) -> GuestCrashError:
    """Return the error of a CPU that can deliver neither an exception nor the one that follows."""
    return GuestCrashError(f"the CPU shut down at {pc:#x} (an exception while delivering one)", pc)


class PageFaultError(GuestCrashError):
    """The CPU accessed an address that its address space, kept by the host, does not permit.

    `address` is that of the page, or that of the instruction if its fetch faulted: Unicorn reports
    no more.
    """

    def __init__(self, address: int, access: Access, pc: int) -> None:
        super().__init__(f"the CPU cannot continue at {pc:#x}: no {(access.name or '').lower()} at {address:#x}", pc)
        self.address = address
        self.access = access
