"""FBT on each ISA, by the ISA's name."""

from __future__ import annotations

from typing import Final

from emu.support.by_name import ByName
from providers.fbt.port import Port

PORTS: Final[ByName[Port]] = ByName("providers.fbt", ("x86_64", "aarch64", "riscv64", "i386"), "PORT")
