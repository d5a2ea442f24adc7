"""Uprobes on x86-64; the rules are in `x86`.  Source: Linux 6.12 arch/x86/kernel/uprobes.c."""

from __future__ import annotations

from typing import Final

from providers.uprobes.port import Port
from providers.uprobes.x86 import LONG_TABLES, port

PORT: Final[Port] = port(LONG_TABLES)
