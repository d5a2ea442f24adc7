"""kinst on AArch64.

An instruction that uses the pc or branches is emulated; every other one is copied before a second
breakpoint.

Source: FreeBSD sys/cddl/dev/kinst/aarch64/kinst_isa.c.  Three errors of FreeBSD are corrected here:
it copies br, blr and ret, so that blr leaves a link into the trampoline; it copies loads of
literals, which then load data near the trampoline; and it refuses adr and adrp, because its kernel
does not restore all registers from the trap frame.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Rule
from emu.displaced.plans import Store
from emu.isa.aarch64.traps import BRK_DTRACE
from providers.fasttrap.aarch64 import PORT as USER
from providers.fbt.port import Exclusion
from providers.fidelity import Fidelity
from providers.kinst.port import ENTERED, FRAMED, Frames, Port

_ISA: Final = "FreeBSD sys/cddl/dev/kinst/aarch64/kinst_isa.c"
_BREAK: Final = BRK_DTRACE.to_bytes(4, "little")


def _treat(code: Code) -> Decision:
    """Decide about an instruction, as fasttrap does."""
    decision = USER.treat(code, Fidelity.EXACT)
    if isinstance(decision, Emulated) and any(isinstance(one, Store) for one in decision.plan.operations):
        return OutOfLine(decision.rule, 4, code.data[:4])  # the standard entry: a copy is possible too
    return decision


def _frame_after(code: bytes, before: Frames) -> Frames:
    """Follow mov x29, sp ... ldp x29, x30."""
    word = int.from_bytes(code, "little")
    if word & 0xFFC003FF == 0x910003FD:  # add x29, sp, #imm
        return FRAMED
    return ENTERED if word & 0x7FC07FFF in {0x28C07BFD, 0x29407BFD} else before  # ldp x29, x30, [sp] ...


PORT: Final = Port(
    exclusions=(
        Exclusion(
            Rule("exception handler", "runs for every breakpoint", f"{_ISA}, kinst_md_excluded"),
            names=frozenset({"handle_el1h_sync", "do_el1h_sync"}),
        ),
    ),
    patch=lambda _length: _BREAK,
    boundaries=USER.boundaries,
    longest=4,
    around=USER.around,
    treat=_treat,
    frame_after=_frame_after,
    size=8,
    trampoline=lambda copied, _address, _after: copied.code + _BREAK,
    trap=lambda _copied: 4,
)
