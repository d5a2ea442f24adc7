"""The probe sites of a function of a Linux kernel.

Linux compiles its functions with a pad at the entry, which ftrace turns into a call and back again;
a landing pad for indirect jumps may come before it.  A breakpoint on the ftrace pad would be
overwritten when ftrace is switched on, so an entry probe goes, if it can,

1. onto the landing pad (x86-64 endbr64, AArch64 bti or paciasp), which is never rewritten;
2. else onto the first instruction after ftrace's pad;
3. else onto the pad itself;
4. in a function without pads, onto the first instruction.

"If it can" means that the effect of the displaced instruction is known as a plan, which the host
executes.  Return probes go onto every return instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.displaced.decision import Code, Emulated, Rule
from emu.displaced.plans import Plan, Set
from emu.isa.base import Isa
from providers import fasttrap, kinst
from providers.fidelity import Fidelity
from providers.linux_kernel.port import NOP, PORTS

_RETURN: Final = Rule("return", "FBT's own stub emulates it", "FreeBSD sys/cddl/dev/dtrace")
# The length of the longest instruction plus one, in bytes.
LONGEST: Final = 16


def treat(isa: Isa, code: bytes, address: int) -> Emulated | None:
    """Return the plan of the instruction that starts `code`; None: there is none for it."""
    port, pc = PORTS[isa.name], isa.registers.pc
    length = port.nop(code) or port.landing(code)
    if length:
        return Emulated(NOP, length, Plan((Set(pc, pc, length),)))
    known = port.more(code)
    if known is not None:
        rule, operations, length = known
        return Emulated(rule, length, Plan((*operations, Set(pc, pc, length))))
    # From FBT's stub only returns are used: it treats other instructions as those at the start of FreeBSD's functions.
    length = isa.instruction_length(code)
    plan = isa.stub.plan(code, address) if length and port.returns(code[:length]) else None
    if plan is not None:
        return Emulated(_RETURN, length, plan)
    found = kinst.PORTS[isa.name].treat(Code(code, address))
    return found if isinstance(found, Emulated) else None


def entry_site(isa: Isa, code: bytes, address: int) -> tuple[int, Emulated] | None:
    """Return the address of a function's entry probe and the displaced instruction, or None."""
    port = PORTS[isa.name]
    landing = port.landing(code)
    pad = port.pad(code[landing:])
    candidates = ([0] if landing or not pad else []) + ([landing + pad, landing] if pad else [])
    for offset in candidates:
        found = treat(isa, code[offset:], address + offset)
        if found is not None:
            return address + offset, found
    return None


def tail_calls(isa: Isa, code: bytes, address: int) -> Iterator[int]:
    """Yield the jumps that leave a function, or may leave it: no return probe is there."""
    port = PORTS[isa.name]
    for offset in fasttrap.PORTS[isa.name].returns(code, address, Fidelity.EXACT):
        length = isa.instruction_length(code[offset : offset + LONGEST])
        if not port.returns(code[offset : offset + length]):
            yield address + offset


def return_sites(isa: Isa, code: bytes, address: int) -> Iterator[tuple[int, Emulated]]:
    """Yield the return instructions of a function, with their effects."""
    port = PORTS[isa.name]
    for offset in kinst.PORTS[isa.name].boundaries(code):
        length = isa.instruction_length(code[offset : offset + LONGEST])
        if length and port.returns(code[offset : offset + length]):
            found = treat(isa, code[offset : offset + LONGEST], address + offset)
            if found is not None:
                yield address + offset, found
