"""Uprobes on i386: 32-bit tasks of the same kernel.

Source: Linux 6.12 arch/x86/kernel/uprobes.c.
"""

from __future__ import annotations

from typing import Final

from emu.displaced import Code, Treatment
from providers.fidelity import Fidelity
from providers.uprobes.port import Port
from providers.uprobes.x86 import PROTECTED_TABLES


def _treat(code: Code, fidelity: Fidelity) -> Treatment:
    """Decide about an instruction (arch_uprobe_analyze_insn)."""
    return PROTECTED_TABLES[fidelity].decide(code)


PORT: Final = Port(
    breakpoint=b"\xcc",
    longest=16,
    alignment=1,
    slot=128,
    step_trap=b"",
    treat=_treat,
)
