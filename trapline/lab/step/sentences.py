"""A sentence for each instruction of the guest: what it does, and to what."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from emu.isa.base import Isa
from trapline.lab.step.recording import Access, Stage

# Names of conditional branches.
_CONDITIONAL: Final = re.compile(r"(?!jmp)j[a-z]+|b\.[a-z]+|cbn?z|tbn?z|(c\.)?b(eq|ne|lt|ge)(u?|z)|loop[a-z]*")
_RETURNS_FROM_TRAP: Final[Mapping[str, str]] = {
    "iretq": "takes rip, cs, rflags, rsp and ss from the stack",
    "iretd": "takes eip, cs and eflags from the stack",
    "iret": "takes eip, cs and eflags from the stack",
    "eret": "takes the pc from ELR_EL1 and the flags from SPSR_EL1",
    "sret": "takes the pc from sepc and the mode from sstatus",
}
# Accesses that are named one by one; more are counted.
_FEW: Final = 3


@dataclass(frozen=True, slots=True)
class Instruction:
    """An executed instruction, and what it did."""

    isa: Isa
    stage: Stage
    text: str
    pc: int
    size: int
    next_pc: int
    before: Mapping[str, int]
    after: Mapping[str, int]
    memory: Sequence[Access]
    location: Callable[[int], str]
    link: bool
    """Whether it left the address behind it in the link register or on the stack."""

    @property
    def mnemonic(self) -> str:
        """The instruction's name."""
        return self.text.split(" ", 1)[0]

    @property
    def changed(self) -> dict[str, int]:
        """The registers that it changed, but for pc and flags."""
        apart = {self.isa.registers.pc, self.isa.traps.flags}
        return {name: value for name, value in self.after.items() if value != self.before[name] and name not in apart}


def sentence(one: Instruction) -> str:
    """Return what an instruction does, as one or two sentences."""
    for rule in (_trap_return, _jump, _stores, _loads, _stack, _registers):
        found = rule(one)
        if found:
            return found
    flags = one.isa.traps.flags
    if flags and one.before[flags] != one.after[flags]:
        return "Only the flags change."
    return "No register changes its value."


def _trap_return(one: Instruction) -> str:
    found = _RETURNS_FROM_TRAP.get(one.mnemonic)
    return f"Ends the trap: the CPU {found}, and continues at {one.location(one.next_pc)}." if found else ""


def _jump(one: Instruction) -> str:
    if one.next_pc == one.pc + one.size:
        if _CONDITIONAL.fullmatch(one.mnemonic):
            return "The condition does not hold, so the branch is not taken."
        return ""
    where = one.location(one.next_pc)
    if one.link:
        return f"Calls {where}."
    if _CONDITIONAL.fullmatch(one.mnemonic):
        return f"The condition holds: goes to {where}."
    if one.mnemonic.startswith("ret") or one.text.endswith("jr ra"):
        return f"Returns to {where}."
    return f"Goes to {where}."


def _listed(names: Sequence[str]) -> str:
    if len(names) == 1:
        return names[0]
    return f"{', '.join(names[:-1])} and {names[-1]}"


def _stores(one: Instruction) -> str:
    writes = [access for access in one.memory if access.write]
    if not writes:
        return ""
    named = [access for access in writes if access.name and "`" not in access.name]
    if named and len(named) == len(writes):
        same = [access.name for access in named if one.before.get(access.name) == access.value]
        if len(same) == len(named):
            return f"Saves {_listed(same)} in the trap frame."
        texts = [_into_field(one, access) for access in named[:_FEW]]
        return f"Writes {_listed(texts)}{_more(len(named))}."
    texts = []
    for access in writes[:_FEW]:
        what = next((name for name in one.text.replace(",", " ").split() if one.before.get(name) == access.value), "")
        where = access.name or f"{access.address:#x}"
        texts.append(f"{what + ' (' if what else ''}{access.value:#x}{')' if what else ''} to {where}")
    return f"Writes {_listed(texts)}{_more(len(writes))}."


def _into_field(one: Instruction, access: Access) -> str:
    holder = next((name for name in one.text.replace(",", " ").split() if one.before.get(name) == access.value), "")
    return f"{holder or hex(access.value)} to the field {access.name} of the trap frame"


def _more(count: int) -> str:
    return f", and {count - _FEW} more" if count > _FEW else ""


def _loads(one: Instruction) -> str:
    reads = [access for access in one.memory if not access.write]
    if not reads:
        return ""
    named = [access.name for access in reads if access.name and "`" not in access.name]
    if not named:
        into = _listed(list(one.changed)) if one.changed else ""
        texts = [f"{access.value:#x} from {access.name or hex(access.address)}" for access in reads[:_FEW]]
        return f"Reads {_listed(texts)}{_more(len(reads))}" + (f", into {into}." if into else ".")
    popped = one.mnemonic.startswith("pop") and one.text.endswith(named[0])
    back = [name for name in named if popped or (name in one.changed and one.after[name] == _value(reads, name))]
    back = back or [name for name in named if _unchanged(one, reads, name)]
    if back and one.stage in {Stage.DISPLACED, Stage.RETURN} and len(back) == len(named):
        return f"Restores {_listed(back)} from the trap frame."
    into = _listed([name for name in one.changed if name != one.isa.registers.sp] or [""])
    fields = f"the field{'s' if len(named) > 1 else ''} {_listed(named)} of the trap frame"
    return f"Reads {fields}{f', into {into}' if into else ''}."


def _unchanged(one: Instruction, reads: Sequence[Access], name: str) -> bool:
    """Return whether a register was loaded with the value that it had."""
    return name in re.split(r"[^a-z0-9]+", one.text) and one.after.get(name) == _value(reads, name)


def _value(reads: Sequence[Access], name: str) -> int:
    return next(access.value for access in reads if access.name == name)


def _stack(one: Instruction) -> str:
    sp = one.isa.registers.sp
    if list(one.changed) != [sp]:
        return ""
    distance = one.after[sp] - one.before[sp]
    if abs(distance) > 1 << 20:
        return f"{sp} becomes {one.after[sp]:#x}: another stack."
    if distance < 0:
        return f"Makes room for {-distance} bytes on the stack."
    return f"Gives {distance} bytes back to the stack."


def _registers(one: Instruction) -> str:
    changed = one.changed
    if not changed:
        return ""
    texts = [f"{name} becomes {value:#x}" for name, value in list(changed.items())[:_FEW]]
    return f"{_listed(texts)}{_more(len(changed))}."
