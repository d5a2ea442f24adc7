"""Displaced instructions on RISC-V, in the order of FreeBSD's dtrace_invop_start.

The saved word always has 32 bits, so its upper half contains the bytes after a compressed
instruction; the rows of compressed instructions test only the low half.
"""

from __future__ import annotations

from emu.displaced.decision import Displaced, DisplacedRow, DisplacedTable, Otherwise
from emu.displaced.plans import Clear, Plan, Set, Store

_STUB = "FreeBSD sys/cddl/dev/dtrace/riscv/dtrace_subr.c"


def _sd(insn: Displaced) -> Plan:
    return Plan((Store("ra", "sp", insn.bits(31, 25) << 5 | insn.bits(11, 7)), Set("pc", "pc", 4)))


def _c_sdsp(insn: Displaced) -> Plan:
    return Plan((Store("ra", "sp", insn.bits(12, 10) << 3 | insn.bits(9, 7) << 6), Set("pc", "pc", 2)))


# FreeBSD sets sepc, whose lowest bit is always 0 (RISC-V privileged specification, 4.1.7).
_RET = Plan((Clear("pc", "ra", 1),))
_STAY = Plan(())

STUB = DisplacedTable(
    by_code=False,
    rows=(
        DisplacedRow(
            "sd ra, imm(sp)", 0x01FFF07F, 0x00113023, 4, _sd, invop=1, code="SD", source=_STUB,
            why="saves the return address: where FBT puts the entry probe",
            quirk="the offset is read as unsigned: from -2048 to -1 the store goes 4096 bytes too high",
        ),
        DisplacedRow(
            "ret", 0xFFFFFFFF, 0x00008067, 4, lambda _: _RET, invop=3, code="RET", source=_STUB,
            why="returns to the caller: where FBT puts the return probe",
        ),
        DisplacedRow(
            "c.sdsp ra, imm(sp)", 0xE07F, 0xE006, 2, _c_sdsp, invop=2, code="C_SDSP", source=_STUB,
            why="saves the return address: where FBT puts the entry probe",
        ),
        DisplacedRow(
            "c.jr ra", 0xFFFF, 0x8082, 2, lambda _: _RET, invop=4, code="C_RET", source=_STUB,
            why="returns to the caller: where FBT puts the return probe",
        ),
        DisplacedRow(
            "c.nop", 0xFFFF, 0x0001, 2, lambda _: _STAY, invop=5, code="NOP", source=_STUB,
            why="tells the stub that kinst has set the pc itself; never a site of FBT",
            quirk="the pc is not advanced: a c.nop displaced by another provider would trap forever",
        ),
        DisplacedRow(
            "anything else", 0, 0, 0, Otherwise.REFUSE, source=_STUB,
            why="the stub returns -1: no handler claims the breakpoint, and the kernel panics",
        ),
    ),
)  # fmt: skip
