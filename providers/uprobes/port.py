"""What an ISA brings to uprobes, as arch/*/kernel/**/uprobes.c does: what becomes of each displaced instruction.

To add an ISA write `providers/uprobes/<isa>.py` with a `Port` and list it in
`providers/uprobes/uprobes.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from emu.displaced import Plan

EINVAL = 22
ENOEXEC = 8
# Of the kernel's own; programs see the number.
ENOTSUPP = 524


@dataclass(frozen=True, slots=True)
class Refused:
    """The probe cannot be: the error number that registering it gives."""

    errno: int
    why: str
    source: str


@dataclass(frozen=True, slots=True)
class Simulated:
    """The kernel does what the instruction would have done; no slot is used."""

    name: str
    length: int
    plan: Plan


@dataclass(frozen=True, slots=True)
class SingleStepped:
    """A copy of the instruction runs in a slot, and what it did is put right afterwards."""

    length: int
    code: bytes
    """The copy; rewritten where the original names an address relative to the pc."""
    scratch: str = ""
    """Register that has the address after the original while the copy runs; "" for none."""
    absolute: bool = False
    """Whether the pc is right after the step: a return, or a jump through a register."""
    calls: bool = False
    """Whether the copy pushed a return address, which is that of the slot."""
    pushes_flags: bool = False
    """Whether the copy pushed the flags, in which the trap flag is that of the step."""
    pops_flags: bool = False
    """Whether the trap flag is right after the step: the copy took it from the stack."""


Analysis = Refused | Simulated | SingleStepped


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
    """What follows the copy in its slot and ends the step; b"": the CPU is told to trap after one
    instruction."""
    analyze: Callable[[bytes, int], Analysis]
    """(code, address) -> what is done with the instruction."""
