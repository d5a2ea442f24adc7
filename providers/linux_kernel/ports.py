"""The ports of the providers of a Linux kernel, by ISA."""

from __future__ import annotations

from typing import Final

from emu.support.by_name import ByName
from providers.linux_kernel.port import Port

PORTS: Final[ByName[Port]] = ByName("providers.linux_kernel", ("riscv64", "aarch64", "x86_64"), "PORT")
