"""Uprobes on i386: 32-bit tasks of the same kernel.  Source: Linux 6.12 arch/x86/kernel/uprobes.c."""

from __future__ import annotations

from functools import partial
from typing import Final

from emu.isa.x86.plans import PROTECTED_MODE
from providers.uprobes.port import Port
from providers.uprobes.x86_64 import analyze

PORT: Final = Port(
    breakpoint=b"\xcc",
    longest=16,
    alignment=1,
    slot=128,
    step_trap=b"",
    analyze=partial(analyze, mode=PROTECTED_MODE),
)
