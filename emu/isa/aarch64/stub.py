"""Displaced instructions on AArch64, in the order of FreeBSD's dtrace_invop_start."""

from __future__ import annotations

from emu.displaced.decision import Displaced, DisplacedRow, DisplacedTable, Otherwise
from emu.displaced.plans import Load, Plan, Set, Store
from emu.isa.aarch64.registers import REGISTERS
from emu.isa.aarch64.traps import NOP_WORD

_STUB = "FreeBSD sys/cddl/dev/dtrace/aarch64/dtrace_subr.c"

# x0 .. x30 by number; 31 is the zero register here, never sp.
_X = tuple(register.name for register in REGISTERS.registers[:31])
_ZERO = 31

_NEXT = Set("pc", "pc", 4)


def _pair(insn: Displaced) -> tuple[int, int, int]:
    """Return Rt, Rt2 and the offset in bytes of a load or store pair of X registers."""
    return insn.bits(4, 0), insn.bits(14, 10), insn.signed(21, 15) * 8


def _stp(insn: Displaced) -> Plan:
    first, second, offset = _pair(insn)
    stores = (Store("" if number == _ZERO else _X[number], "sp", offset + word)
              for number, word in ((first, 0), (second, 8)))  # fmt: skip
    return Plan((*stores, Set("sp", "sp", offset), _NEXT))


def _ldp(insn: Displaced) -> Plan:
    first, second, offset = _pair(insn)
    sets = (Set(_X[number], temporary) for number, temporary in ((first, "%0"), (second, "%1")) if number != _ZERO)
    return Plan((Load("%0", "sp"), Load("%1", "sp", 8), *sets, Set("sp", "sp", offset), _NEXT))


def _sub(insn: Displaced) -> Plan:
    return Plan((Set("sp", "sp", -insn.bits(21, 10)), _NEXT))


def _b(insn: Displaced) -> Plan:
    return Plan((Set("pc", "pc", insn.bits(23, 0) * 4),))


_NOP = Plan((_NEXT,))
_RET = Plan((Set("pc", "lr"),))

STUB = DisplacedTable(
    by_code=False,
    rows=(
        DisplacedRow(
            "stp xt1, xt2, [sp, #imm]!", 0xFFC00000, 0xA9800000, 4, _stp, invop=1, code="STP", source=_STUB,
            why="opens the frame: where FBT puts most entry probes",
            quirk="the base register is not checked: sp is assumed",
        ),
        DisplacedRow(
            "ldp xt1, xt2, [sp], #imm", 0xFFC00000, 0xA8C00000, 4, _ldp, source=_STUB,
            why="closes the frame; emulated by the stub, not a site of FBT",
            quirk="the base register is not checked: sp is assumed",
        ),
        DisplacedRow(
            "sub sp, sp, #imm", 0xFFC00000, 0xD1000000, 4, _sub, invop=4, code="SUB", source=_STUB,
            why="opens a large frame: where FBT puts the entry probe of such functions",
            quirk="neither register is checked: sp is assumed for both",
        ),
        DisplacedRow(
            "nop", 0xFFFFFFFF, NOP_WORD, 4, lambda _: _NOP, source=_STUB,
            why="the first instruction of assembly functions: an entry probe of FBT",
        ),
        DisplacedRow(
            "b label", 0xFF000000, 0x14000000, 4, _b, invop=3, code="B", source=_STUB,
            why="leaves the function as a tail call: a return probe of FBT",
            quirk="the mask has two bits too many: only forward branches of less than 64 MiB are recognized",
        ),
        DisplacedRow(
            "ret", 0xFFFFFFFF, 0xD65F03C0, 4, lambda _: _RET, invop=2, code="RET", source=_STUB,
            why="returns to the caller: where FBT puts the return probe",
        ),
        DisplacedRow(
            "anything else", 0, 0, 0, Otherwise.REFUSE, source=_STUB,
            why="the stub does not handle it and does not advance the pc: the breakpoint would repeat forever",
        ),
    ),
)  # fmt: skip
