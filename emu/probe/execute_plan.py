"""Two ways to execute a plan in Python: `interpret` defines what plans mean.

`compile_plan` does the same, faster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final, Protocol

from emu.displaced.plans import TEMPORARY, Branch, Check, Clear, Compare, Load, Plan, Set, SetVector, Store, Sum
from emu.isa.base import Isa
from emu.support.words import WORD_MASK

# Plans whose functions are kept.
_COMPILED: Final = 1 << 13
# Plans that differ only in numbers are compiled once: a program has few others.
_SHAPES: Final = 1 << 10


class Words(Protocol):
    """Words of 64 bits, by their numbers: a memoryview of format "Q", or an object like it."""

    def __getitem__(self, slot: int, /) -> int: ...

    def __setitem__(self, slot: int, value: int, /) -> None: ...


class Cpu(Protocol):
    """The stopped CPU, as a plan's executor needs it."""

    @property
    def words(self) -> Words:
        """The CPU state, indexed by `Register.slot`."""
        ...

    def load(self, address: int, size: int) -> int:
        """Return `size` bytes of memory, little-endian.

        Raises `emu.support.bad_address.BadAddressError`.
        """
        ...

    def store(self, address: int, size: int, value: int) -> None:
        """Write the low `size` bytes of `value`.  Raises `emu.support.bad_address.BadAddressError`."""
        ...

    def read_register(self, name: str) -> int:
        """Return a register that may have no slot, such as the flags."""
        ...

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register."""
        ...


def holds(test: Check, isa: Isa, left: int, right: int) -> bool:
    """Return whether a comparison of two values is true.

    With FLAGS, `left` is the value of the flags, and `right` is the number of the condition.
    """
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
    """Carry a plan out, one operation at a time: this defines the meaning of plans.

    Raises `emu.support.bad_address.BadAddressError`.
    """
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
    """Return a Python function that does what `interpret` does, without any lookup.

    It is called with the CPU and the address of the displaced instruction, whatever the pc register
    contains by then.
    """
    numbers: list[int] = []
    make = _compiled("\n        ".join(_statements(plan, isa, numbers)), len(numbers))
    tests = [test for operation in plan.operations if isinstance(operation, Branch) for test in operation.tests]
    return make(isa, tests, *numbers)


@lru_cache(_SHAPES)
def _compiled(statements: str, numbers: int) -> Callable[..., Callable[[Cpu, int], None]]:
    """Return what makes the functions of plans that differ only in so many numbers."""
    source = "\n".join(
        (
            f"def make({', '.join(('isa', 'tests', *(f'n{number}' for number in range(numbers))))}):",
            "    def plan(cpu, pc):",
            "        words = cpu.words",
            f"        {statements}",
            "    return plan",
        )
    )
    namespace: dict[str, Any] = {"holds": holds, "extend": _extend}
    exec(source, namespace)  # noqa: S102  (the source is made here, from the numbers of registers)
    made: Callable[..., Callable[[Cpu, int], None]] = namespace["make"]
    return made


def _statements(plan: Plan, isa: Isa, numbers: list[int]) -> Iterator[str]:
    """Translate operations into statements, and add the numbers that they name n0, n1, ...

    A register is kept in a local variable once it was read or written.
    """
    slots, mask = isa.registers.slots, isa.address_mask
    local: dict[str, str] = {"": "0", isa.registers.pc: "pc"}
    checked = 0

    def name(operand: str) -> str:
        return f"t{operand[1:]}" if operand.startswith(TEMPORARY) else f"r{slots[operand]}"

    def value(operand: str, offset: int) -> str:
        return f"{local[operand]} + {known(offset)} & {mask}" if offset else local[operand]

    def known(number: int) -> str:
        numbers.append(number)
        return f"n{len(numbers) - 1}"

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
                yield assign(target, f"{local[source]} & {known(~bits & mask)}")
            case Sum(target, base, scaled, shift, offset):
                yield from fetch(base)
                yield from fetch(scaled)
                yield assign(target, f"{local[base]} + ({local[scaled]} << {shift}) + {known(offset)} & {mask}")
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
                    shown = local[right] if isinstance(right, str) else known(right)
                    conditions.append(f"holds(tests[{number}], isa, {local[left]}, {shown})")
                checked += len(tests)
                distance = f"{known(taken)} if {' and '.join(conditions)} else {known(missed)}"
                yield assign(isa.registers.pc, f"pc + ({distance}) & {mask}")
            case SetVector(number, low, high):
                yield from fetch(low)
                yield from fetch(high)
                yield f"cpu.write_vector({number}, {local[low]}, {local[high]})"
    if local[isa.registers.pc] == "pc":  # no operation has changed it
        yield f"words[{slots[isa.registers.pc]}] = pc"
