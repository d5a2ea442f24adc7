"""Uprobes on i386: 32-bit tasks of the same kernel.

Source: Linux 6.12 arch/x86/kernel/uprobes.c.
"""

from __future__ import annotations

from typing import Final

from providers.uprobes.port import Port
from providers.uprobes.x86 import PROTECTED_TABLES, port

PORT: Final[Port] = port(PROTECTED_TABLES)
