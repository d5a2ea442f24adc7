"""Linux' binary interface by ISA."""

from __future__ import annotations

from typing import Final

from emu.guest.linux.abi import aarch64, i386, riscv64, x86_64
from emu.guest.linux.abi.base import Abi

# By the ISA's name.
ABIS: Final[dict[str, Abi]] = {
    "x86_64": x86_64.ABI,
    "aarch64": aarch64.ABI,
    "riscv64": riscv64.ABI,
    "i386": i386.ABI,
}
