"""Machine code that reads the number of the CPU that runs."""

from __future__ import annotations

from emu.native.guest import GuestCode


def cpu_number(address: int) -> GuestCode:
    """Return the function `cpu`, which reads a word."""
    return GuestCode({"cpu": lambda f, _slow: f.ret(f.load(f.module.symbol("cpu_number")))}, {"cpu_number": address})
