"""Displaced instructions on x86-64: the codes of FreeBSD's dtrace_invop_start, one row each."""

from __future__ import annotations

from emu.displaced.decision import Displaced, DisplacedRow, DisplacedTable, Otherwise
from emu.displaced.plans import Load, Plan, Set, Store

_STUB = "FreeBSD sys/cddl/dev/dtrace/amd64/dtrace_asm.S"

_PUSH = Plan((Store("rbp", "rsp", -8), Set("rsp", "rsp", -8), Set("rip", "rip", 1)))
_LEAVE = Plan((Load("%0", "rbp"), Set("rsp", "rbp", 8), Set("rbp", "%0"), Set("rip", "rip", 1)))
_NOP = Plan((Set("rip", "rip", 1),))
_RET = Plan((Load("%0", "rsp"), Set("rsp", "rsp", 8), Set("rip", "%0")))


def _call(insn: Displaced) -> Plan:
    return Plan((
        Set("%0", "rip", 5),
        Store("%0", "rsp", -8),
        Set("rsp", "rsp", -8),
        Set("rip", "rip", 5 + insn.signed(39, 8)),
    ))  # fmt: skip


STUB = DisplacedTable(
    by_code=True,
    rows=(
        DisplacedRow(
            "push rbp", 0xFF, 0x55, 1, lambda _: _PUSH, invop=1, code="PUSHL_EBP", source=_STUB,
            why="saves the caller's frame pointer: where FBT puts the entry probe",
        ),
        DisplacedRow(
            "pop rbp", 0xFF, 0x5D, 1, Otherwise.REFUSE, invop=2, code="POPL_EBP", source=_STUB,
            why="only the i386 stub emulates it; on amd64 the code falls through to the kernel's own handler",
        ),
        DisplacedRow(
            "leave", 0xFF, 0xC9, 1, lambda _: _LEAVE, invop=3, code="LEAVE", source=_STUB,
            why="undoes the frame; emulated by the stub, not a site of FBT on x86-64",
        ),
        DisplacedRow(
            "nop", 0xFF, 0x90, 1, lambda _: _NOP, invop=4, code="NOP", source=_STUB,
            why="a nop of one byte",
        ),
        DisplacedRow(
            "ret", 0xFF, 0xC3, 1, lambda _: _RET, invop=5, code="RET", source=_STUB,
            why="returns to the caller: where FBT puts the return probe",
        ),
        DisplacedRow(
            "call rel32", 0xFF, 0xE8, 5, _call, invop=6, code="CALL", source=_STUB,
            why="a call must push the return address of the original, so a copy elsewhere cannot run; for kinst",
        ),
        DisplacedRow(
            "anything else", 0, 0, 0, Otherwise.REFUSE, source=_STUB,
            why="dtrace_invop has no code for it: the breakpoint would reach the kernel's own handler",
        ),
    ),
)  # fmt: skip
