"""FBT on each ISA, by the ISA's name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from providers.fbt import aarch64, i386, riscv64, x86_64
from providers.fbt.port import Port

PORTS: Final[Mapping[str, Port]] = {
    "x86_64": x86_64.PORT,
    "aarch64": aarch64.PORT,
    "riscv64": riscv64.PORT,
    "i386": i386.PORT,
}
