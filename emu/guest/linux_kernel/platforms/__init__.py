"""The machines, by ISA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.guest.linux_kernel.platforms.platform import Board, Wires
from emu.guest.linux_kernel.platforms.riscv64 import RiscvBoard

BOARDS: Final[Mapping[str, type[Board]]] = {"riscv64": RiscvBoard}

__all__ = ["BOARDS", "Board", "Wires"]
