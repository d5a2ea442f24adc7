"""The contract of uprobes' port to an ISA, as arch/*/kernel/**/uprobes.c is.

A port decides how instructions are displaced.

To add an ISA write `providers/uprobes/<isa>.py` with a `Port` and list it in `PORTS`
(docs/adding-a-provider.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.decision import Code, Decision
from emu.support.by_name import ByName
from emu.support.immutable import immutable
from providers.fidelity import Fidelity

EINVAL = 22
ENOEXEC = 8
# The kernel's own error number, which programs see.
ENOTSUPP = 524


@immutable
class Port:
    """Uprobes on one ISA."""

    breakpoint: bytes
    """The bytes that are written over the start of an instruction, whatever its length is."""
    longest: int
    """Bytes of the longest instruction."""
    alignment: int
    """Offsets must be multiples of this."""
    slot: int
    """Bytes of a slot."""
    step_trap: bytes
    """The code after the copy in its slot, which ends the step; b"": the CPU traps after one
    instruction."""
    treat: Callable[[Code, Fidelity], Decision]
    """How an instruction is displaced: `Emulated`, `Stepped`, or `Refused` by a rule with an
    errno."""


PORTS: Final[ByName[Port]] = ByName("providers.uprobes", ("x86_64", "aarch64", "riscv64", "i386"), "PORT")
