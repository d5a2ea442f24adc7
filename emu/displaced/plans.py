"""Plans: the emulation of displaced instructions, as plain data.

A plan is a few operations on registers and memory.  It does not depend on how it is executed:
`emu.probe.execute_plan` executes it in Python, `emu.engine.hits.plan_encoding` in machine code, and
the documentation prints it.

    push rbp    ->    [rsp-8] = rbp; rsp = rsp-8; rip = rip+1

A plan starts with the pc register on the displaced instruction, as if it had never been patched,
and moves the pc itself.  So one plan is valid at every address with the same instruction.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

# An operand that starts with it ("%0") is a temporary of the plan; "" is the constant 0; all others name registers.
TEMPORARY = "%"


def _sum(base: str, offset: int) -> str:
    if not base:
        return f"{offset:#x}"
    return f"{base}{offset:+d}" if offset else base


class Set(NamedTuple):
    """`target` = `source` + `offset`.  On the pc it is a jump."""

    target: str
    source: str
    offset: int = 0

    def __str__(self) -> str:
        return f"{self.target} = {_sum(self.source, self.offset)}"


class Clear(NamedTuple):
    """`target` = `source` without the bits set in `bits`."""

    target: str
    source: str
    bits: int

    def __str__(self) -> str:
        return f"{self.target} = {self.source} & ~{self.bits:#x}"


class Sum(NamedTuple):
    """`target` = `base` + (`scaled` << `shift`) + `offset`: an address of x86."""

    target: str
    base: str
    scaled: str
    shift: int = 0
    offset: int = 0

    def __str__(self) -> str:
        scaled = f"{self.scaled}<<{self.shift}" if self.shift else self.scaled
        return f"{self.target} = {_sum(f'{self.base}+{scaled}' if self.base else scaled, self.offset)}"


class Load(NamedTuple):
    """`target` = the `size` bytes at `base` + `offset`, zero extended, or sign extended."""

    target: str
    base: str
    offset: int = 0
    size: int = 8
    signed: bool = False

    def __str__(self) -> str:
        return f"{self.target} = {'signed ' * self.signed}[{_sum(self.base, self.offset)}]"


class Store(NamedTuple):
    """The `size` bytes at `base` + `offset` = the low bytes of `source`."""

    source: str
    base: str
    offset: int = 0
    size: int = 8

    def __str__(self) -> str:
        return f"[{_sum(self.base, self.offset)}] = {self.source or '0'}"


class Compare(Enum):
    """The comparison of a conditional branch."""

    EQ = "=="
    NE = "!="
    LT = "<"
    GE = ">="
    LTU = "<u"
    GEU = ">=u"
    BIT_CLEAR = "lacks bit"
    BIT_SET = "has bit"
    FLAGS = "flags satisfy"
    """The ISA's condition number `right`, of the current flags (`Isa.condition`); `Check.name` is
    what an assembler calls it."""


class Check(NamedTuple):
    """A condition: `left` compared with `right`, registers or numbers, cut to `bits` bits."""

    compare: Compare
    left: str = ""
    right: str | int = ""
    bits: int = 64
    name: str = ""

    def __str__(self) -> str:
        if self.compare is Compare.FLAGS:
            return f"{self.compare.value} {self.name or self.right}"
        cut = f" in {self.bits} bits" if self.bits != 64 else ""
        return f"{self.left or '0'} {self.compare.value} {'0' if self.right == '' else self.right}{cut}"


class Branch(NamedTuple):
    """pc = pc + `taken` if all of `tests` hold, else pc + `missed`.

    The last operation of its plan.
    """

    tests: tuple[Check, ...]
    taken: int
    missed: int

    def __str__(self) -> str:
        return f"pc += {self.taken:#x} if {' and '.join(map(str, self.tests))} else {self.missed:#x}"


class SetVector(NamedTuple):
    """Vector register `number` = the 64-bit words `low` and `high`; the rest of it is zero."""

    number: int
    low: str
    high: str = ""

    def __str__(self) -> str:
        return f"v{self.number} = {self.high or '0'}:{self.low}"


Operation = Set | Clear | Sum | Load | Store | Branch | SetVector


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """The emulation of one instruction: operations, in order.

    Everything that can fault comes before the first write to a register, so that a fault leaves the
    registers as they were and the instruction can be executed again, as on a CPU. A load therefore
    goes to a temporary first.
    """

    operations: tuple[Operation, ...]

    def __post_init__(self) -> None:
        committed = False
        for operation in self.operations:
            if isinstance(operation, (Set, Clear, Sum)):
                committed |= not operation.target.startswith(TEMPORARY)
            elif isinstance(operation, (Branch, SetVector)):
                committed = True
            elif committed:
                raise ValueError(f"'{operation}' may fault after a register was written: {self}")
            elif isinstance(operation, Load) and not operation.target.startswith(TEMPORARY):
                raise ValueError(f"'{operation}' loads into a register: load into a temporary, then set")

    def __eq__(self, other: object) -> bool:
        """Return whether two plans do the same.

        Operations are tuples, and operations of two kinds may have equal fields.
        """
        if not isinstance(other, Plan):
            return NotImplemented
        return self.operations == other.operations and [*map(type, self.operations)] == [*map(type, other.operations)]

    def __hash__(self) -> int:
        return hash(self.operations)

    def __str__(self) -> str:
        return "; ".join(map(str, self.operations)) or "does nothing and does not advance the pc"


def takes_frame_back(plan: Plan | None, frame_pointer: str) -> bool:
    """Return whether an instruction restores the caller's frame pointer.

    The frame exists until that instruction has been executed.
    """
    return plan is not None and any(
        isinstance(operation, Set) and operation.target == frame_pointer for operation in plan.operations
    )
