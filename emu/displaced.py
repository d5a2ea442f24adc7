"""What becomes of a displaced instruction: tables that decide, plans that say how, and two ways to run a plan.

A breakpoint takes the place of an instruction, so somebody has to do what that instruction would
have done.  FreeBSD's FBT does it on the way out of the trap handler: `dtrace_invop()` answers with
a code or with the saved instruction, and a stub emulates that on the interrupted registers.  Here
the stub is a table.  Each ISA lists its rows in `emu/isa/<isa>/stub.py`, in the order in which the
kernel tests them.  A row that emulates builds a `Plan`, and a plan is plain data: a few operations
on registers and memory, the same for the executors below, for the documentation and for a native
engine.

    push rbp    ->    [rsp-8] = rbp; rsp = rsp-8; rip = rip+1

A plan starts with the pc register on the displaced instruction, as if it had never been patched,
and moves the pc itself.  So one plan serves every place where the same instruction stands.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from emu.words import WORD_MASK

if TYPE_CHECKING:
    from emu.isa.base import Isa


# Plans whose functions are kept.
_COMPILED: Final = 1 << 13

# Operands that start with it ("%0") live as long as the plan; "" is the constant 0; all others name registers.
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
    """What a conditional branch asks."""

    EQ = "=="
    NE = "!="
    LT = "<"
    GE = ">="
    LTU = "<u"
    GEU = ">=u"
    BIT_CLEAR = "lacks bit"
    BIT_SET = "has bit"
    FLAGS = "flags satisfy"
    """The ISA's condition number `right`, of the flags as they are (`Isa.condition`)."""


class Check(NamedTuple):
    """A condition: `left` compared with `right`, a register or a number, both cut to `bits` bits."""

    compare: Compare
    left: str = ""
    right: str | int = ""
    bits: int = 64

    def __str__(self) -> str:
        if self.compare is Compare.FLAGS:
            return f"{self.compare.value} {self.right}"
        cut = f" in {self.bits} bits" if self.bits != 64 else ""
        return f"{self.left or '0'} {self.compare.value} {'0' if self.right == '' else self.right}{cut}"


class Branch(NamedTuple):
    """pc = pc + `taken` if all of `tests` hold, else pc + `missed`; the last operation of its plan."""

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
    """What to do instead of one instruction: operations, in order.

    Everything that can fault comes before the first write to a register, so that a fault leaves the
    registers as they were and the instruction can be tried again, as a CPU would.  A load therefore
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
        """Tell whether two plans do the same: operations are tuples, and those of two kinds may have equal fields."""
        if not isinstance(other, Plan):
            return NotImplemented
        return self.operations == other.operations and [*map(type, self.operations)] == [*map(type, other.operations)]

    def __hash__(self) -> int:
        return hash(self.operations)

    def __str__(self) -> str:
        return "; ".join(map(str, self.operations)) or "nothing, not even the pc moves"


class Displaced(NamedTuple):
    """An instruction as a row's builder sees it: its bytes as a little-endian number, and where it stands."""

    word: int
    address: int

    def bits(self, high: int, low: int) -> int:
        """Return bits high..low, unsigned."""
        return self.word >> low & (1 << high - low + 1) - 1

    def signed(self, high: int, low: int) -> int:
        """Return bits high..low as a two's complement number."""
        sign = 1 << high - low
        return (self.bits(high, low) ^ sign) - sign


@dataclass(frozen=True, slots=True)
class Code:
    """An instruction where it stands: the bytes from its first one on, its address, and the code before it."""

    data: bytes
    address: int
    before: bytes = b""
    """The bytes of its function that precede it, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Why something is decided as it is: the name by which reports and tests know the rule, the reason, the source."""

    name: str
    why: str
    source: str
    """The system and file that has the rule."""
    breaks: bool = field(default=False, kw_only=True)
    """Whether a breakpoint there changes what the program does, rather than only watching it."""
    errno: int = field(default=0, kw_only=True)
    """The error number that a refusal gives to programs; 0 where the system gives none."""
    quirk: str = field(default="", kw_only=True)
    """Where the real system's emulation differs from the CPU; "" where it does not."""


# What becomes of a displaced instruction: one of these four, each with the rule that decided.


@dataclass(frozen=True, slots=True)
class Emulated:
    """The plan is carried out instead of the instruction."""

    rule: Rule
    length: int
    plan: Plan
    leaves: bool = False
    """Whether it is a return, which leaves its function wherever it goes."""


@dataclass(frozen=True, slots=True)
class OutOfLine:
    """A copy of the instruction runs elsewhere, and what follows the copy leads back: fasttrap, kinst."""

    rule: Rule
    length: int
    code: bytes
    """The copy; rewritten where the original names an address relative to the pc."""
    scratch: str = ""
    """Register that has the address after the original while the copy runs; "" for none."""
    place: int = -1
    """Offset in the copy of a 32-bit distance to be filled in once its address is known; -1: there is none."""
    target: int = 0
    """What that distance leads to, counted from the original."""
    leaves: int | None = None
    """When the copy does not come to its end: the number of a condition, `ALWAYS`, or None for never."""


@dataclass(frozen=True, slots=True)
class Stepped:
    """A copy of the instruction runs in a slot for one step, and what it did is put right afterwards: uprobes."""

    rule: Rule
    length: int
    code: bytes
    """The copy; rewritten where the original names an address relative to the pc."""
    scratch: str = ""
    """Register that has the address after the original while the copy runs; "" for none."""
    absolute: bool = False
    """Whether the pc is right after the step: a return, or a jump through a register."""
    calls: bool = False
    """Whether the copy pushed a return address, which is that of the slot."""
    pushes_flags: bool = False
    """Whether the copy pushed the flags, in which the trap flag is that of the step."""
    pops_flags: bool = False
    """Whether the trap flag is right after the step: the copy took it from the stack."""


@dataclass(frozen=True, slots=True)
class Refused:
    """No tracepoint may go there; the rule's `why` is the reason."""

    rule: Rule


Treatment = Emulated | OutOfLine | Stepped | Refused
# `OutOfLine.leaves` of an instruction that always goes elsewhere.
ALWAYS: Final = -1


class Otherwise(Enum):
    """What a row does with an instruction that it does not emulate."""

    OUT_OF_LINE = "out of line"
    STEP = "stepped"
    REFUSE = "refused"


@dataclass(frozen=True, slots=True)
class DisplacedRow(Rule):
    """A rule for the instructions whose word & `mask` == `value`, and what is done with them.

    Its name is the instruction as an assembler writes it, with generic operands.
    """

    # Both again, so that a row's pattern comes right after its name.
    why: str = field(kw_only=True)
    source: str = field(kw_only=True)
    mask: int
    value: int
    length: int
    """Bytes of the instruction; 0 where the row holds for any length."""
    what: Callable[[Displaced], Plan] | Otherwise
    invop: int | None = field(default=None, kw_only=True)
    """The code `dtrace_invop()` returns or tags records with; None: the stub has none."""
    code: str = field(default="", kw_only=True)
    """The code's name in FreeBSD's dtrace.h, without DTRACE_INVOP_."""

    def matches(self, word: int) -> bool:
        """Return whether an instruction word falls under this row."""
        return word & self.mask == self.value

    def treat(self, insn: Displaced, code: bytes) -> Treatment:
        """Return what becomes of an instruction that falls under this row; `code` begins with its bytes."""
        match self.what:
            case Otherwise.OUT_OF_LINE:
                return OutOfLine(self, self.length, code[: self.length])
            case Otherwise.STEP:
                return Stepped(self, self.length, code[: self.length])
            case Otherwise.REFUSE:
                return Refused(self)
            case plan:
                return Emulated(self, self.length, plan(insn))


@dataclass(frozen=True, slots=True)
class DisplacedTable:
    """The rows of an ISA in the order in which they are tested; the last one matches everything."""

    rows: tuple[DisplacedRow, ...]
    by_code: bool
    """`dtrace_invop()` returns an invop code (x86); otherwise it returns the saved instruction
    word."""

    def decide(self, code: bytes, address: int) -> Treatment:
        """Return what becomes of the instruction at `address`, by the first row that matches `code`."""
        word = int.from_bytes(code[:8], "little")
        row = next(row for row in self.rows if row.matches(word) and len(code) >= row.length)
        return row.treat(Displaced(word, address), code)

    def plan(self, code: bytes, address: int) -> Plan | None:
        """Return the plan of the instruction that starts `code`; None if it is not emulated."""
        found = self.decide(code, address)
        return found.plan if isinstance(found, Emulated) else None

    def number(self, code: str) -> int:
        """Return the number of an invop code, DTRACE_INVOP_`code`.  Raises KeyError if the stub has no such code."""
        for row in self.rows:
            if row.code == code and row.invop is not None:
                return row.invop
        raise KeyError(code)

    def invop(self, rval: int, saved: int, address: int) -> Plan | None:
        """Return what the breakpoint stub does when `dtrace_invop()` answered `rval`; None: it does not claim the trap.

        On x86 `rval` is a code, and `saved` holds the displaced instruction; elsewhere `rval` is
        the saved word itself.
        """
        if not rval:
            return None
        word = saved if self.by_code else rval
        for row in self.rows:
            if not isinstance(row.what, Otherwise) and (row.invop == rval if self.by_code else row.matches(word)):
                return row.what(Displaced(word, address))
        return None


class Cpu(Protocol):
    """The stopped CPU, as a plan's executor needs it."""

    words: memoryview
    """The CPU state as 64-bit words (format "Q"), indexed by `Register.slot`."""

    def load(self, address: int, size: int) -> int:
        """Return `size` bytes of memory, little-endian.  Raises `emu.guest.base.BadAddressError`."""
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write the low `size` bytes of `value`.  Raises `emu.guest.base.BadAddressError`."""
        ...

    def read_register(self, name: str) -> int:
        """Return a register that may have no slot, such as the flags."""
        ...

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register."""
        ...


def holds(test: Check, isa: Isa, left: int, right: int) -> bool:
    """Tell whether a test holds of two values; for FLAGS `left` is the flags and `right` the condition's number."""
    compare = test.compare
    if compare is Compare.FLAGS:
        assert isa.condition is not None, f"{isa.name} has no condition flags"
        return isa.condition(right, left)
    mask, sign = (1 << test.bits) - 1, 1 << test.bits - 1
    if compare in {Compare.BIT_SET, Compare.BIT_CLEAR}:
        return bool(left >> right & 1) is (compare is Compare.BIT_SET)
    left, right = left & mask, right & mask
    if compare in {Compare.LT, Compare.GE}:
        left, right = left ^ sign, right ^ sign
    if compare in {Compare.EQ, Compare.NE}:
        return (left == right) is (compare is Compare.EQ)
    return (left < right) is (compare in {Compare.LT, Compare.LTU})


def interpret(plan: Plan, isa: Isa, cpu: Cpu) -> None:
    """Carry a plan out, one operation at a time: the meaning of plans.  Raises `emu.guest.base.BadAddressError`."""
    slots, mask = isa.registers.slots, isa.address_mask
    pc = isa.registers.pc
    temporaries: dict[str, int] = {"": 0}

    def read(operand: str) -> int:
        if operand in temporaries:
            return temporaries[operand]
        return cpu.words[slots[operand]] if operand in slots else cpu.read_register(operand)

    def write(operand: str, value: int) -> None:
        if operand.startswith(TEMPORARY):
            temporaries[operand] = value & mask
        else:
            cpu.words[slots[operand]] = value & mask

    def check(test: Check) -> bool:
        left = cpu.read_register(isa.traps.flags) if test.compare is Compare.FLAGS else read(test.left)
        return holds(test, isa, left, test.right if isinstance(test.right, int) else read(test.right))

    for operation in plan.operations:
        match operation:
            case Set(target, source, offset):
                write(target, read(source) + offset)
            case Clear(target, source, bits):
                write(target, read(source) & ~bits)
            case Sum(target, base, scaled, shift, offset):
                write(target, read(base) + (read(scaled) << shift) + offset)
            case Load(target, base, offset, size, signed):
                value = cpu.load(read(base) + offset & mask, size)
                write(target, _extend(value, size) if signed else value)
            case Store(source, base, offset, size):
                cpu.store(read(base) + offset & mask, size, read(source))
            case Branch(tests, taken, missed):
                write(pc, read(pc) + (taken if all(map(check, tests)) else missed))
            case SetVector(number, low, high):
                cpu.write_vector(number, read(low), read(high))


def _extend(value: int, size: int) -> int:
    """Sign extend `size` bytes to 64 bits."""
    sign = 1 << 8 * size - 1
    return (value ^ sign) - sign & WORD_MASK


@lru_cache(_COMPILED)
def compile_plan(plan: Plan, isa: Isa) -> Callable[[Cpu, int], None]:
    """Return a Python function that does what `interpret` does, without looking anything up.

    It is called with the CPU and the address of the displaced instruction, wherever the pc register
    is by then.
    """
    source = "\n    ".join(("def plan(cpu, pc):", "words = cpu.words", *_statements(plan, isa)))
    tests = [test for operation in plan.operations if isinstance(operation, Branch) for test in operation.tests]
    namespace: dict[str, Any] = {"holds": holds, "isa": isa, "tests": tests, "extend": _extend}
    exec(source, namespace)  # noqa: S102  (the source is made here, from register numbers and constants)
    compiled: Callable[[Cpu, int], None] = namespace["plan"]
    return compiled


def _statements(plan: Plan, isa: Isa) -> Iterator[str]:
    """Translate operations into statements; a register is kept in a local variable once it was read or written."""
    slots, mask = isa.registers.slots, isa.address_mask
    local: dict[str, str] = {"": "0", isa.registers.pc: "pc"}
    checked = 0

    def name(operand: str) -> str:
        return f"t{operand[1:]}" if operand.startswith(TEMPORARY) else f"r{slots[operand]}"

    def value(operand: str, offset: int) -> str:
        return f"{local[operand]} + {offset} & {mask}" if offset else local[operand]

    def assign(target: str, expression: str) -> str:
        local[target] = name(target)
        word = "" if target.startswith(TEMPORARY) else f"words[{slots[target]}] = "
        return f"{word}{local[target]} = {expression}"

    def fetch(operand: str) -> Iterator[str]:
        if operand not in local and operand not in slots:
            local[operand] = operand
            yield f"{operand} = cpu.read_register({operand!r})"
        elif operand not in local:
            local[operand] = name(operand)
            yield f"{local[operand]} = words[{slots[operand]}]"

    for operation in plan.operations:
        match operation:
            case Set(target, source, offset):
                yield from fetch(source)
                yield assign(target, value(source, offset))
            case Clear(target, source, bits):
                yield from fetch(source)
                yield assign(target, f"{local[source]} & {~bits & mask}")
            case Sum(target, base, scaled, shift, offset):
                yield from fetch(base)
                yield from fetch(scaled)
                yield assign(target, f"{local[base]} + ({local[scaled]} << {shift}) + {offset} & {mask}")
            case Load(target, base, offset, size, signed):
                yield from fetch(base)
                loaded = f"cpu.load({value(base, offset)}, {size})"
                yield assign(target, f"extend({loaded}, {size}) & {mask}" if signed else loaded)
            case Store(source, base, offset, size):
                yield from fetch(base)
                yield from fetch(source)
                yield f"cpu.store({value(base, offset)}, {size}, {local[source]})"
            case Branch(tests, taken, missed):
                conditions = []
                for number, test in enumerate(tests, checked):
                    left = isa.traps.flags if test.compare is Compare.FLAGS else test.left
                    yield from fetch(left)
                    right = test.right
                    if isinstance(right, str):
                        yield from fetch(right)
                    shown = local[right] if isinstance(right, str) else str(right)
                    conditions.append(f"holds(tests[{number}], isa, {local[left]}, {shown})")
                checked += len(tests)
                yield assign(isa.registers.pc, f"pc + ({taken} if {' and '.join(conditions)} else {missed}) & {mask}")
            case SetVector(number, low, high):
                yield from fetch(low)
                yield from fetch(high)
                yield f"cpu.write_vector({number}, {local[low]}, {local[high]})"
    if local[isa.registers.pc] == "pc":  # nobody moved it
        yield f"words[{slots[isa.registers.pc]}] = pc"
