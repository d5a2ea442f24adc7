"""The machines, by ISA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.guest.linux_kernel.platforms.aarch64 import ArmBoard
from emu.guest.linux_kernel.platforms.platform import Board
from emu.guest.linux_kernel.platforms.riscv64 import RiscvBoard
from emu.guest.linux_kernel.platforms.x86_64 import PcBoard

BOARDS: Final[Mapping[str, type[Board]]] = {"riscv64": RiscvBoard, "aarch64": ArmBoard, "x86_64": PcBoard}
