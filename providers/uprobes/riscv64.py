"""Uprobes on RISC-V.  Source: Linux 6.12 arch/riscv/kernel/probes/decode-insn.c, uprobes.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from emu.displaced import Compare, Displaced, Plan
from emu.isa.riscv64 import plans
from emu.isa.riscv64.length import instruction_length
from emu.isa.riscv64.traps import C_EBREAK, EBREAK
from providers.uprobes.port import EINVAL, ENOTSUPP, Analysis, Port, Refused, Simulated, SingleStepped

_SOURCE: Final = "Linux arch/riscv/kernel/probes/decode-insn.c"


class _Row(NamedTuple):
    mask: int
    value: int
    length: int
    what: str
    plan: Callable[[Displaced], Plan | None] | None = None
    """None: refused."""


_ROWS: Final = (
    _Row(0x7F, 0x73, 4, "a system instruction"),
    _Row(0x7F, 0x0F, 4, "a fence"),
    _Row(0xE003, 0xA001, 2, "c.j", plans.c_j),
    _Row(0xE07F, 0x8002, 2, "c.jr", plans.c_jump),
    _Row(0xE003, 0xC001, 2, "c.beqz", plans.c_branch(Compare.EQ)),
    _Row(0xE003, 0xE001, 2, "c.bnez", plans.c_branch(Compare.NE)),
    _Row(0x7F, 0x6F, 4, "jal", plans.jal),
    _Row(0x707F, 0x67, 4, "jalr", plans.jalr),
    _Row(0x7F, 0x17, 4, "auipc", plans.auipc),
    _Row(0x7F, 0x63, 4, "branch", plans.branch),
)


def _analyze(code: bytes, address: int) -> Analysis:
    length = instruction_length(code)
    if not length:
        return Refused(EINVAL, "the file ends", _SOURCE)
    word = int.from_bytes(code[:length], "little")
    if word in {EBREAK, C_EBREAK}:
        return Refused(ENOTSUPP, "it is a breakpoint", "Linux kernel/events/uprobes.c")
    for row in _ROWS:
        if row.length == length and word & row.mask == row.value:
            plan = row.plan(Displaced(word, address)) if row.plan is not None else None
            if plan is None:
                # Of reserved branches Linux carries out nothing and stays where it is, for ever.
                return Refused(EINVAL, f"{row.what}: it cannot be moved", _SOURCE)
            return Simulated(row.what, length, plan)
    return SingleStepped(length, code[:length])


PORT: Final = Port(
    breakpoint=C_EBREAK.to_bytes(2, "little"),
    longest=8,
    alignment=2,
    slot=8,
    step_trap=EBREAK.to_bytes(4, "little"),
    analyze=_analyze,
)
