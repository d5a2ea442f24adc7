"""kinst on each ISA, by the ISA's name; FreeBSD has none for i386."""

from __future__ import annotations

from typing import Final

from emu.support.by_name import ByName
from providers.kinst.port import Port

PORTS: Final[ByName[Port]] = ByName("providers.kinst", ("x86_64", "aarch64", "riscv64"), "PORT")
