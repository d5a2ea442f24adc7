"""The errors of an engine."""

from __future__ import annotations

from emu.engine.access import Access


class EngineError(Exception):
    """The CPU emulator cannot do what was asked; the message says why and what helps."""


class GuestCrashError(EngineError):
    """The CPU cannot go on: it left RAM, or an exception had no handler.  `pc` is where."""

    def __init__(self, message: str, pc: int) -> None:
        super().__init__(message)
        self.pc = pc


class PageFaultError(GuestCrashError):
    """The CPU met an address that its address space, which the host keeps, does not grant.

    `address` is that of the page, or the instruction's if that is where the fault was: Unicorn
    tells no more.
    """

    def __init__(self, address: int, access: Access, pc: int) -> None:
        super().__init__(f"the CPU cannot go on at {pc:#x}: no {(access.name or '').lower()} at {address:#x}", pc)
        self.address = address
        self.access = access
