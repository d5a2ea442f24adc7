"""The order in which a patch is written while other CPUs execute the code.

Bytes that a CPU may fetch in pieces are written in three steps: a breakpoint over the first of
them, then those behind it, then the first ones.  After each step all other CPUs fetch anew, so none
executes bytes of two steps; one that hits the breakpoint meanwhile continues where the new
instruction leads.  Bytes that every fetch sees whole need one step: one byte on x86, an aligned
word on AArch64 and RISC-V.

Source: Linux arch/x86/kernel/alternative.c (smp_text_poke_batch_finish, in older versions
text_poke_bp_batch); for the single step arch/arm64/kernel/jump_label.c and
arch/riscv/kernel/jump_label.c, whose sites are aligned words.
"""

from __future__ import annotations

from typing import NamedTuple

from emu.isa.base import Isa


class Step(NamedTuple):
    """A write, after which all other CPUs must fetch anew before the next one."""

    address: int
    data: bytes
    whole: bool = True
    """Whether it must be one store."""


def breakpoint_first(isa: Isa, address: int, data: bytes) -> tuple[Step, ...]:
    """Return the steps that write bytes: one, or three of which the first writes a breakpoint."""
    trap = isa.traps.breakpoints[-1]
    size = len(trap)
    if len(data) <= size or _fetched_whole(isa, address, len(data)):
        return (Step(address, data),)
    return Step(address, trap), Step(address + size, data[size:], whole=False), Step(address, data[:size])


def _fetched_whole(isa: Isa, address: int, size: int) -> bool:
    unit = isa.fetching.unit
    return address // unit == (address + size - 1) // unit
