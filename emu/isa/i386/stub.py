"""Displaced instructions on i386: the codes of FreeBSD's dtrace_invop_start, one row each."""

from __future__ import annotations

from emu.displaced.decision import DisplacedRow, DisplacedTable, Otherwise
from emu.displaced.plans import Load, Plan, Set, Store

_STUB = "FreeBSD sys/cddl/dev/dtrace/i386/dtrace_asm.S"

_PUSH = Plan((Store("ebp", "esp", -4, 4), Set("esp", "esp", -4), Set("eip", "eip", 1)))
_POP = Plan((Load("%0", "esp", 0, 4), Set("ebp", "%0"), Set("esp", "esp", 4), Set("eip", "eip", 1)))
_LEAVE = Plan((Load("%0", "ebp", 0, 4), Set("esp", "ebp", 4), Set("ebp", "%0"), Set("eip", "eip", 1)))
_NOP = Plan((Set("eip", "eip", 1),))

STUB = DisplacedTable(
    by_code=True,
    rows=(
        DisplacedRow(
            "push ebp", 0xFF, 0x55, 1, lambda _: _PUSH, invop=1, code="PUSHL_EBP", source=_STUB,
            why="saves the caller's frame pointer: where FBT puts the entry probe",
        ),
        DisplacedRow(
            "pop ebp", 0xFF, 0x5D, 1, lambda _: _POP, invop=2, code="POPL_EBP", source=_STUB,
            why="restores the caller's frame pointer, right before ret: where FBT puts the return probe",
        ),
        DisplacedRow(
            "leave", 0xFF, 0xC9, 1, lambda _: _LEAVE, invop=3, code="LEAVE", source=_STUB,
            why="undoes the frame, right before ret: where FBT puts the return probe",
        ),
        DisplacedRow(
            "nop", 0xFF, 0x90, 1, lambda _: _NOP, invop=4, code="NOP", source=_STUB,
            why="a nop of one byte",
        ),
        DisplacedRow(
            "ret", 0xFF, 0xC3, 1, Otherwise.REFUSE, invop=5, code="RET", source=_STUB,
            why="only the amd64 stub emulates it; on i386 the code falls through to the kernel's own handler",
        ),
        DisplacedRow(
            "anything else", 0, 0, 0, Otherwise.REFUSE, source=_STUB,
            why="dtrace_invop has no code for it: the trap would reach the kernel's own handler",
        ),
    ),
)  # fmt: skip
