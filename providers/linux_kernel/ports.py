"""The ports of the providers of a Linux kernel, by ISA."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from providers.linux_kernel import aarch64, riscv64, x86_64
from providers.linux_kernel.port import Port

PORTS: Final[Mapping[str, Port]] = {
    "riscv64": riscv64.PORT,
    "aarch64": aarch64.PORT,
    "x86_64": x86_64.PORT,
}
