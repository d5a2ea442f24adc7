"""The contract of uprobes' port to an ISA, as arch/*/kernel/**/uprobes.c is.

A port decides how instructions are displaced.

To add an ISA write `providers/uprobes/<isa>.py` with a `Port` and list it in `PORTS` of
`providers/uprobes/ports.py` (docs/adding-a-provider.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.displaced import Code, Treatment
from providers.fidelity import Fidelity

EINVAL = 22
ENOEXEC = 8
# Of the kernel's own; programs see the number.
ENOTSUPP = 524


@dataclass(frozen=True, slots=True)
class Port:
    """Uprobes on one ISA."""

    breakpoint: bytes
    """What is written over the first bytes of an instruction, whatever its length."""
    longest: int
    """Bytes of the longest instruction."""
    alignment: int
    """What offsets must be multiples of."""
    slot: int
    """Bytes of a slot."""
    step_trap: bytes
    """What follows the copy in its slot and ends the step; b"": the CPU is set to trap after one
    instruction."""
    treat: Callable[[Code, Fidelity], Treatment]
    """How an instruction is displaced: `Emulated`, `Stepped`, or `Refused` by a rule with an
    errno."""
