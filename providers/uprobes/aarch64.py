"""Uprobes on AArch64.  Source: Linux 6.12 arch/arm64/kernel/probes/decode-insn.c, uprobes.c."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from emu.displaced import Compare, Displaced, Plan
from emu.isa.aarch64 import plans
from providers.uprobes.port import EINVAL, Analysis, Port, Refused, Simulated, SingleStepped

_SOURCE: Final = "Linux arch/arm64/kernel/probes/decode-insn.c"
_OURS: Final = "this simulator: Linux takes it, and the copy loads from beside the slot"
_BRK: Final = 0xD4200000
BRK_UPROBE: Final = _BRK | 5 << 5
BRK_STEP: Final = _BRK | 6 << 5
"""Ends the step, for which Linux uses the CPU's own single-stepping."""


class _Row(NamedTuple):
    mask: int
    value: int
    what: str
    plan: Callable[[Displaced], Plan] | None = None
    """None: refused."""


_ROWS: Final = (
    _Row(0xFC000000, 0x14000000, "b", plans.b),
    _Row(0xFC000000, 0x94000000, "bl", plans.bl),
    _Row(0xFF000000, 0x54000000, "b.cond", plans.conditional),
    _Row(0xFF000000, 0x34000000, "cbz", plans.compare_branch(Compare.EQ, 32)),
    _Row(0xFF000000, 0xB4000000, "cbz", plans.compare_branch(Compare.EQ, 64)),
    _Row(0xFF000000, 0x35000000, "cbnz", plans.compare_branch(Compare.NE, 32)),
    _Row(0xFF000000, 0xB5000000, "cbnz", plans.compare_branch(Compare.NE, 64)),
    _Row(0x7F000000, 0x36000000, "tbz", plans.test_bit(Compare.BIT_CLEAR)),
    _Row(0x7F000000, 0x37000000, "tbnz", plans.test_bit(Compare.BIT_SET)),
    _Row(0xFFFFFC1F, 0xD61F0000, "br", plans.br),
    _Row(0xFFFFFC1F, 0xD63F0000, "blr", plans.blr),
    _Row(0xFFFFFC1F, 0xD65F0000, "ret", plans.br),
    _Row(0xFEFFF800, 0xD61F0800, "a branch with pointer authentication"),
    _Row(0xFEFFF800, 0xD63F0800, "a branch with pointer authentication"),
    _Row(0xFFFFFBFF, 0xD65F0BFF, "a return with pointer authentication"),
    _Row(0xFF000000, 0xD4000000, "it raises an exception"),
    _Row(0xFFFFFFFF, 0xD69F03E0, "eret"),
    _Row(0xFFFFFBFF, 0xD69F0BFF, "eret"),
    _Row(0xFFF8F01F, 0xD500401F, "it sets the processor's state"),
    _Row(0xFFF00000, 0xD5100000, "it writes a system register"),
    _Row(0x9F000000, 0x10000000, "adr", plans.adr),
    _Row(0x9F000000, 0x90000000, "adrp", plans.adrp),
    _Row(0xBF000000, 0x18000000, "it loads from an address relative to the pc"),
    _Row(0xFF000000, 0x98000000, "it loads from an address relative to the pc"),
    _Row(0xFF000000, 0xD8000000, "it prefetches from an address relative to the pc"),
    _Row(0x3F800000, 0x08000000, "it reads or writes memory exclusively"),
    _Row(0x3B200C00, 0x19000400, "it copies or sets memory, over several instructions"),
)
_VECTOR_LITERALS: Final = frozenset({0x1C, 0x5C, 0x9C})
_HINT: Final = 0xFFFFF01F, 0xD503201F
_STEPPED_HINTS: Final = frozenset({0x00, 0x07, 0x08, 0x0A, 0x18, 0x19, 0x1A, 0x1B, 0x20, 0x22, 0x24, 0x26})
_MRS: Final = 0xFFF00000, 0xD5300000
_DAIF: Final = 0xDA11


def _analyze(code: bytes, address: int) -> Analysis:
    if len(code) < 4:
        return Refused(EINVAL, "the file ends", _SOURCE)
    word = int.from_bytes(code[:4], "little")
    for row in _ROWS:
        if word & row.mask == row.value:
            if row.plan is None:
                return Refused(EINVAL, row.what, _SOURCE)
            return Simulated(row.what, 4, row.plan(Displaced(word, address)))
    if word & _HINT[0] == _HINT[1] and word >> 5 & 0x7F not in _STEPPED_HINTS:
        return Refused(EINVAL, "a hint that is not known to be harmless", _SOURCE)
    if word & _MRS[0] == _MRS[1] and (word & 0x1FFFE0) >> 5 == _DAIF:
        return Refused(EINVAL, "it reads the interrupt mask", _SOURCE)
    if word >> 24 in _VECTOR_LITERALS:
        return Refused(EINVAL, "it loads a vector register from an address relative to the pc", _OURS)
    return SingleStepped(4, code[:4])


PORT: Final = Port(
    breakpoint=BRK_UPROBE.to_bytes(4, "little"),
    longest=4,
    alignment=4,
    slot=8,
    step_trap=BRK_STEP.to_bytes(4, "little"),
    analyze=_analyze,
)
