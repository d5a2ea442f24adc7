"""Uprobes on RISC-V.  Source: Linux 6.12 arch/riscv/kernel/probes/decode-insn.c, uprobes.c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from emu.displaced.decision import Code, Decision, Displaced, DisplacedRow, DisplacedTable, Otherwise, Refused, Rule
from emu.displaced.plans import Compare, Plan
from emu.isa.riscv64 import plans
from emu.isa.riscv64.instruction import instruction_length
from emu.isa.riscv64.traps import C_EBREAK, EBREAK
from providers.fasttrap.riscv64 import IN_SEQUENCE, LR, RESERVATION, SC, in_sequence
from providers.fidelity import Fidelity
from providers.uprobes.port import EINVAL, ENOTSUPP, Port

_SOURCE: Final = "Linux arch/riscv/kernel/probes/decode-insn.c"
_MOVES: Final = "it transfers control or names an address relative to the pc"
# Its refusals have an error number of their own.
_CORE: Final = "Linux kernel/events/uprobes.c"


def _simulated(name: str, mask: int, value: int, length: int, plan: Callable[[Displaced], Plan]) -> DisplacedRow:
    return DisplacedRow(name, mask, value, length, plan, why=_MOVES, source=_SOURCE)


def _refused(name: str, mask: int, value: int, length: int, why: str, source: str = _SOURCE) -> DisplacedRow:
    errno = ENOTSUPP if source == _CORE else EINVAL
    return DisplacedRow(name, mask, value, length, Otherwise.REFUSE, why=why, source=source, errno=errno)


def _stepped(name: str, mask: int, value: int, length: int, why: str) -> DisplacedRow:
    return DisplacedRow(name, mask, value, length, Otherwise.STEP, why=why, source=_SOURCE)


_RESERVED: Final = "the encoding is reserved: Linux does not advance the pc, and the probe hits forever"
_OURS: Final = "this simulator"
_SAME: Final = "it does the same at any address"
TABLE: Final = DisplacedTable((
    _refused("ebreak", 0xFFFFFFFF, EBREAK, 4, "it is a breakpoint", _CORE),
    _refused("c.ebreak", 0xFFFF, C_EBREAK, 2, "it is a breakpoint", _CORE),
    _refused("ecall, csrrw", 0x7F, 0x73, 4, "a system instruction: it cannot be moved"),
    _refused("fence", 0x7F, 0x0F, 4, "a fence: it cannot be moved"),
    _simulated("c.j", 0xE003, 0xA001, 2, plans.c_j),
    _stepped("c.jr, reserved", 0xFFFF, 0x8002, 2, "the encoding is reserved: the copy faults, as it does"),
    _simulated("c.jr", 0xE07F, 0x8002, 2, plans.c_jump),
    _simulated("c.beqz", 0xE003, 0xC001, 2, plans.c_branch(Compare.EQ)),
    _simulated("c.bnez", 0xE003, 0xE001, 2, plans.c_branch(Compare.NE)),
    _simulated("jal", 0x7F, 0x6F, 4, plans.jal),
    _simulated("jalr", 0x707F, 0x67, 4, plans.jalr),
    _simulated("auipc", 0x7F, 0x17, 4, plans.auipc),
    _refused("branch, reserved", 0x607F, 0x2063, 4, _RESERVED),
    _simulated("branch", 0x7F, 0x63, 4, plans.branch),
    _refused("lr", *LR, 4, RESERVATION, _OURS),
    _refused("sc", *SC, 4, RESERVATION, _OURS),
    _stepped("anything else", 0x3, 0x3, 4, _SAME),
    _stepped("anything else, compressed", 0, 0, 2, _SAME),
), by_code=False)  # fmt: skip
# Linux steps lr and sc, and then sc fails forever.
_LINUX: Final = DisplacedTable(tuple(row for row in TABLE.rows if row.source != _OURS), by_code=False)
_BETWEEN: Final = replace(IN_SEQUENCE, errno=EINVAL)
_MALFORMED: Final = Rule("malformed", "the file ends within the instruction", _SOURCE, errno=EINVAL)


def _treat(code: Code, fidelity: Fidelity) -> Decision:
    """Decide about an instruction (riscv_probe_decode_insn)."""
    length = instruction_length(code.data)
    if not length:
        return Refused(_MALFORMED)
    table = _LINUX if fidelity is Fidelity.LINUX else TABLE
    found = table.decide(code.data[:length], code.address)
    if fidelity is not Fidelity.LINUX and not isinstance(found, Refused) and in_sequence(code):
        return Refused(_BETWEEN)
    return found


PORT: Final = Port(
    breakpoint=C_EBREAK.to_bytes(2, "little"),
    longest=8,
    alignment=2,
    slot=8,
    step_trap=EBREAK.to_bytes(4, "little"),
    treat=_treat,
)
