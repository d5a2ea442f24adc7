"""Uprobes on AArch64.  Source: Linux 6.12 arch/arm64/kernel/probes/decode-insn.c, uprobes.c."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from emu.displaced.decision import Code, Decision, Displaced, DisplacedRow, DisplacedTable, Otherwise, Refused, Rule
from emu.displaced.plans import Compare, Plan
from emu.isa.aarch64 import plans
from emu.isa.aarch64.traps import NOP_WORD
from providers.fasttrap.aarch64 import IN_SEQUENCE, in_sequence
from providers.fidelity import Fidelity, by_fidelity
from providers.uprobes.port import EINVAL, ENOTSUPP, Port

_SOURCE: Final = "Linux arch/arm64/kernel/probes/decode-insn.c"
_MOVES: Final = "it transfers control or names an address relative to the pc"
_OURS: Final = "this simulator"
# Its refusals have an error number of their own.
_CORE: Final = "Linux kernel/events/uprobes.c"
_BRK: Final = 0xD4200000
BRK_UPROBE: Final = _BRK | 5 << 5
# The breakpoint that ends the step; Linux uses the CPU's own single-stepping.
BRK_STEP: Final = _BRK | 6 << 5


_VECTOR: Final = "it loads a vector register from an address relative to the pc"


def _simulated(name: str, mask: int, value: int, plan: Callable[[Displaced], Plan]) -> DisplacedRow:
    return DisplacedRow(name, mask, value, 4, plan, why=_MOVES, source=_SOURCE)


def _stepped(name: str, mask: int, value: int, why: str) -> DisplacedRow:
    return DisplacedRow(name, mask, value, 4, Otherwise.STEP, why=why, source=_SOURCE)


def _refused(name: str, mask: int, value: int, why: str) -> DisplacedRow:
    return DisplacedRow(name, mask, value, 4, Otherwise.REFUSE, why=why, source=_SOURCE, errno=EINVAL)


def _literal(name: str, value: int, size: int) -> DisplacedRow:
    plan = plans.load_vector(size)
    return DisplacedRow(name, 0xFF000000, value, 4, plan, why=_VECTOR, source=_OURS)


_BREAKPOINT: Final = DisplacedRow(
    "brk #5", 0xFFFFFFFF, BRK_UPROBE, 4, Otherwise.REFUSE, why="it is the breakpoint itself", source=_CORE,
    errno=ENOTSUPP,
)  # fmt: skip
_AUTHENTICATED: Final = "a branch with pointer authentication"
_HARMLESS: Final = "a hint that is known to be harmless"
_LITERAL: Final = "it loads from an address relative to the pc"
_ROWS: Final = (
    _BREAKPOINT,
    _simulated("b", 0xFC000000, 0x14000000, plans.b),
    _simulated("bl", 0xFC000000, 0x94000000, plans.bl),
    _simulated("b.cond", 0xFF000000, 0x54000000, plans.conditional),
    _simulated("cbz wt", 0xFF000000, 0x34000000, plans.compare_branch(Compare.EQ, 32)),
    _simulated("cbz xt", 0xFF000000, 0xB4000000, plans.compare_branch(Compare.EQ, 64)),
    _simulated("cbnz wt", 0xFF000000, 0x35000000, plans.compare_branch(Compare.NE, 32)),
    _simulated("cbnz xt", 0xFF000000, 0xB5000000, plans.compare_branch(Compare.NE, 64)),
    _simulated("tbz", 0x7F000000, 0x36000000, plans.test_bit(Compare.BIT_CLEAR)),
    _simulated("tbnz", 0x7F000000, 0x37000000, plans.test_bit(Compare.BIT_SET)),
    _simulated("br", 0xFFFFFC1F, 0xD61F0000, plans.br),
    _simulated("blr", 0xFFFFFC1F, 0xD63F0000, plans.blr),
    _simulated("ret", 0xFFFFFC1F, 0xD65F0000, plans.br),
    _refused("braa", 0xFEFFF800, 0xD61F0800, _AUTHENTICATED),
    _refused("blraa", 0xFEFFF800, 0xD63F0800, _AUTHENTICATED),
    _refused("retaa", 0xFFFFFBFF, 0xD65F0BFF, "a return with pointer authentication"),
    _refused("svc, brk", 0xFF000000, 0xD4000000, "it raises an exception"),
    _refused("eret", 0xFFFFFFFF, 0xD69F03E0, "it returns from an exception"),
    _refused("eretaa", 0xFFFFFBFF, 0xD69F0BFF, "it returns from an exception"),
    _refused("msr field, #imm", 0xFFF8F01F, 0xD500401F, "it sets the processor's state"),
    _refused("msr reg, xt", 0xFFF00000, 0xD5100000, "it writes a system register"),
    _simulated("adr", 0x9F000000, 0x10000000, plans.adr),
    _simulated("adrp", 0x9F000000, 0x90000000, plans.adrp),
    _refused("ldr rt, label", 0xBF000000, 0x18000000, _LITERAL),
    _refused("ldrsw xt, label", 0xFF000000, 0x98000000, _LITERAL),
    _refused("prfm op, label", 0xFF000000, 0xD8000000, "it prefetches from an address relative to the pc"),
    _refused("ldxr, stxr, casp", 0x3F800000, 0x08000000, "it reads or writes memory exclusively"),
    _refused("cpy, set", 0x3B200C00, 0x19000400, "it copies or sets memory, over several instructions"),
    _stepped("nop", 0xFFFFFFFF, NOP_WORD, _HARMLESS),
    _stepped("xpaclri", 0xFFFFFFFF, 0xD50320FF, _HARMLESS),
    _stepped("pacia1716, pacib1716", 0xFFFFFFBF, 0xD503211F, _HARMLESS),
    _stepped("paciaz, paciasp, pacibz, pacibsp", 0xFFFFFF9F, 0xD503231F, _HARMLESS),
    _stepped("bti", 0xFFFFFF3F, 0xD503241F, _HARMLESS),
    _refused("hint", 0xFFFFF01F, 0xD503201F, "a hint that is not known to be harmless"),
    _refused("mrs xt, daif", 0xFFFFFFE0, 0xD53B4220, "it reads the interrupt mask"),
    _literal("ldr st, label", 0x1C000000, 4),
    _literal("ldr dt, label", 0x5C000000, 8),
    _literal("ldr qt, label", 0x9C000000, 16),
    _stepped("anything else", 0, 0, "it does the same at any address"),
)  # fmt: skip
# Linux' masks miss these: the copy loads from the same distance to the slot.
_LITERALS: Final = frozenset({"ldr st, label", "ldr dt, label", "ldr qt, label"})
TABLES: Final = by_fidelity(
    DisplacedTable(_ROWS, by_code=False),
    linux=DisplacedTable(
        tuple(
            replace(row, what=Otherwise.STEP, quirk="the copy would load from an address relative to the slot")
            if row.name in _LITERALS
            else row
            for row in _ROWS
        ),
        by_code=False,
    ),
)
_BETWEEN: Final = replace(IN_SEQUENCE, errno=EINVAL)
_MALFORMED: Final = Rule("malformed", "the file ends within the instruction", _SOURCE, errno=EINVAL)


def _treat(code: Code, fidelity: Fidelity) -> Decision:
    """Decide about an instruction (arm_probe_decode_insn)."""
    if len(code.data) < 4:
        return Refused(_MALFORMED)
    found = TABLES[fidelity].decide(code.data[:4], code.address)
    if fidelity is not Fidelity.LINUX and not isinstance(found, Refused) and in_sequence(code):
        return Refused(_BETWEEN)
    return found


PORT: Final = Port(
    breakpoint=BRK_UPROBE.to_bytes(4, "little"),
    longest=4,
    alignment=4,
    slot=8,
    step_trap=BRK_STEP.to_bytes(4, "little"),
    treat=_treat,
)
