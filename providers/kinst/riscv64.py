"""kinst on RISC-V: jumps and uses of the pc are emulated, the rest is copied.

Source: FreeBSD sys/cddl/dev/kinst/riscv/kinst_isa.c.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import Code, Decision, Refused, Rule
from emu.isa.riscv64.traps import EBREAK
from providers.fasttrap.riscv64 import PORT as USER
from providers.fbt.port import Exclusion
from providers.fidelity import Fidelity
from providers.kinst.port import ENTERED, FRAMED, Frames, Port

_ISA: Final = "FreeBSD sys/cddl/dev/kinst/riscv/kinst_isa.c"
_BREAK: Final = EBREAK.to_bytes(4, "little")
_SYSTEM: Final = 0x73
_PRIVILEGED: Final = Rule("SYSTEM", "it is an instruction of the privileged architecture", _ISA)


def _treat(code: Code) -> Decision:
    """Decide as fasttrap does, except for the SYSTEM opcode (kinst_instr_system)."""
    if code.data and code.data[0] & 0x7F == _SYSTEM:
        return Refused(_PRIVILEGED)
    return USER.treat(code, Fidelity.EXACT)


def _frame_after(code: bytes, before: Frames) -> Frames:
    """Follow sd ra, imm(sp) and addi s0, sp, imm, in either order ... ld s0, imm(sp)."""
    word = int.from_bytes(code, "little")
    half = word & 0xFFFF
    if half & 0xE07F == 0xE006 or word & 0x01FFF07F == 0x00113023:  # c.sdsp ra, sd ra, imm(sp)
        return FRAMED if before.pointed else before._replace(saved=True)
    if (half and half & 0xE01F == 0) or word & 0x000FFFFF == 0x00010413:  # c.addi4spn s0, addi s0, sp, imm
        return FRAMED if before.saved else before._replace(pointed=True)
    if half & 0xEF83 == 0x6402 or word & 0x000FFFFF == 0x00013403:  # c.ldsp s0, ld s0, imm(sp)
        return ENTERED
    return before


PORT: Final = Port(
    exclusions=(
        Exclusion(
            Rule("exception handler", "runs for every breakpoint", f"{_ISA}, kinst_md_excluded"),
            names=frozenset(
                {
                    "cpu_exception_handler",
                    "cpu_exception_handler_supervisor",
                    "cpu_exception_handler_user",
                    "do_trap_supervisor",
                    "do_trap_user",
                }
            ),
        ),
    ),
    patch=USER.breakpoint,
    boundaries=USER.boundaries,
    longest=4,
    around=USER.around,
    treat=_treat,
    frame_after=_frame_after,
    size=8,
    trampoline=lambda copied, _address, _after: copied.code + _BREAK,
    trap=lambda copied: len(copied.code),
)
