"""kinst on each ISA, by the ISA's name; FreeBSD has none for i386."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from providers.kinst import aarch64, riscv64, x86_64
from providers.kinst.port import Port

PORTS: Final[Mapping[str, Port]] = {"x86_64": x86_64.PORT, "aarch64": aarch64.PORT, "riscv64": riscv64.PORT}
