"""The machine code that shortens machine code: `emu.engine.shorter` shows what it does."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Final, NamedTuple

from emu.engine.shorter import BYTE, FORMS, FULL, KNOWN, MODRM, SECOND, SOME, WIDE
from emu.native.builder import Function, Module, Variable
from emu.native.values import Condition, Value, Word

# A prefix without an effect; all that may be found.
_PREFIX: Final = 0x3E
_PREFIXES: Final = (0x66, 0xF0, 0xF2, 0xF3, _PREFIX)
_MOST_PREFIXES: Final = 4
# shr $6,%rdi    and MASK(%rbp),%rdi    add TABLE(%rbp),%rdi, the last two with a distance of one byte
_SHIFT: Final = int.from_bytes(bytes.fromhex("48c1ef06"), "little")
_MASK: Final = int.from_bytes(bytes.fromhex("48237d"), "little")
_TABLE: Final = int.from_bytes(bytes.fromhex("48037d"), "little")
# The difference to a distance of four bytes.
_FAR: Final = 0xC0_0000
# and $...,%rsi    cmp ..(%rdi),%rsi    jne ...    add 0x20(%rdi),%rsi    mov 0x20(%rdi),%rsi    mov %rbp,%rdi
_AND: Final = int.from_bytes(bytes.fromhex("4881e6"), "little")
_COMPARE: Final = int.from_bytes(bytes.fromhex("483b"), "little")
_UNEQUAL: Final = int.from_bytes(bytes.fromhex("0f85"), "little")
_ADDEND: Final = int.from_bytes(bytes.fromhex("48037720"), "little")
_PLACE: Final = int.from_bytes(bytes.fromhex("488b7720"), "little")
_ENV: Final = int.from_bytes(bytes.fromhex("488bfd"), "little")
# push %rbp    pop %rdi    push $...
_PUSH_POP_PUSH: Final = int.from_bytes(bytes.fromhex("555f6a"), "little")
_POP_RCX, _POP_RDX = 0x59, 0x5A
# Bytes in which an access must end, and those of the beginning of its miss that are read.
_ROOM: Final = 64
_MISS: Final = 16
# The largest number that `push` takes as one byte.
_SHORT: Final = 0x7F
_RSP: Final = 4
# Accesses: of one opcode, and behind 0f.
_ACCESSES: Final = (0x63, 0x88, 0x89, 0x8B)
_SECOND_ACCESSES: Final = (0xB6, 0xB7, 0xBE, 0xBF)
# Sums: with an immediate (add, and, sub), of two registers, lea.
_IMMEDIATE_SUMS: Final = (0x81, 0x83)
_SUM_FIELDS: Final = (0x00, 0x20, 0x28)
_SUMS: Final = (0x03, 0x0B, 0x23, 0x2B, 0x33)
_LEA: Final = 0x8D


class _Access(NamedTuple):
    """The parts of a load or a store, as they are before it is changed."""

    compare: Value
    """The address of the comparison."""
    compare_size: Value
    miss: Value
    """The address of the code for a miss."""
    number: Value
    """The lower bits of the number of the address's register."""
    upper: Value
    """The upper bit of that number."""
    code: Value
    """The address of the instruction that accesses the memory."""


def write_shorten(module: Module) -> Function:
    """Write u64 shorten_block(begin, end): shorten the code of a block."""
    forms = module.data("forms", FORMS)
    length = _write_length(module.function("instruction_length", 1, local=True), forms)
    access = _write_access(module)
    total = _write_sum(module.function("shorten_sum", 2, local=True))
    f = module.function("shorten_block", 2)
    begin, end = f.parameters
    place, reached = f.variable(begin), f.variable(begin)
    with f.loop() as loop:
        at = place.get()
        size = f.call(length, at)
        behind = f.add(at, size)
        loop.leave_if(f.either(f.eq(size, 0), f.ugt(behind, end)))
        done = f.call(access, at, end)
        place.set(f.add(at, done))
        loop.again_if(f.ne(done, 0))
        place.set(f.add(behind, f.call(total, at, size)))
        first, second = _byte(f, at), _byte(f, at, 1)
        always = f.eq(first, 0xE9)
        near = f.either(always, f.both(f.eq(first, 0x0F), f.eq(f.and_(second, 0xF0), 0x80)))
        with f.when(near):
            _reach(f, reached, f.add(behind, f.load(behind, -4, 4, signed=True)), end)
        short = f.either(f.eq(first, 0xEB), f.eq(f.and_(first, 0xF0), 0x70))
        with f.when(short):
            _reach(f, reached, f.add(behind, f.load(behind, -1, 1, signed=True)), end)
        indirect = f.both(f.eq(first, 0xFF), f.eq(f.and_(second, 0xF8), 0xE0))
        ends = f.either(f.either(always, f.eq(first, 0xEB)), indirect)
        loop.leave_if(f.both(ends, f.ugt(behind, reached.get())))
    f.ret()
    return f


def _reach(f: Function, reached: Variable, target: Value, end: Value) -> None:
    """Note the target of a jump in the block."""
    with f.when(f.both(f.ult(target, end), f.ugt(target, reached.get()))):
        reached.set(target)


def _write_length(f: Function, forms: Value) -> Function:
    """Write u64 instruction_length(address); 0: it is not known."""
    (start,) = f.parameters
    at, small, wide, form = f.variable(start), f.variable(0), f.variable(0), f.variable(0)
    with f.loop() as loop:
        prefix = _byte(f, at.get())
        loop.leave_if(f.fails(_one_of(f, prefix, _PREFIXES)))
        f.ret_if(f.eq(f.sub(at.get(), start), _MOST_PREFIXES), 0)
        small.set(f.or_(small.get(), f.flag(f.eq(prefix, 0x66))))
        at.set(f.add(at.get(), 1))
    first = _byte(f, at.get())
    with f.choice(_one_of(f, first, (0xC4, 0xC5))) as (vex, legacy):
        with vex:
            # The map of opcodes is behind c4; behind c5 it is the first.
            long = f.eq(first, 0xC4)
            group = f.select(long, f.and_(_byte(f, at.get(), 1), 0x1F), 1)
            at.set(f.add(at.get(), f.select(long, 3, 2)))
            of_first = f.load(f.add(forms, f.add(_byte(f, at.get()), SECOND)), 0, 1)
            further = f.select(f.eq(group, 2), KNOWN | MODRM, f.select(f.eq(group, 3), KNOWN | MODRM | BYTE, 0))
            form.set(f.select(f.eq(group, 1), of_first, further))
            at.set(f.add(at.get(), 1))
        with legacy:
            with f.when(f.eq(f.and_(first, 0xF0), 0x40)):
                wide.set(f.and_(first, 8))
                at.set(f.add(at.get(), 1))
            opcode = _byte(f, at.get())
            escaped = f.eq(opcode, 0x0F)
            second = _byte(f, at.get(), 1)
            form.set(f.load(f.add(forms, f.select(escaped, f.add(second, SECOND), opcode)), 0, 1))
            third = f.both(escaped, _one_of(f, second, (0x38, 0x3A)))
            at.set(f.add(at.get(), f.add(1, f.add(f.flag(escaped), f.flag(third)))))
    known = form.get()
    f.ret_if(f.eq(known, 0), 0)
    # REX.W prevails over the prefix 66.
    four = f.select(f.both(f.ne(small.get(), 0), f.eq(wide.get(), 0)), 2, 4)
    eight = f.both(f.ne(f.and_(known, WIDE), 0), f.ne(wide.get(), 0))
    full = f.select(f.ne(f.and_(known, FULL), 0), f.select(eight, 8, four), 0)
    immediate = f.variable(f.select(f.ne(f.and_(known, BYTE), 0), 1, full))
    with f.when(f.ne(f.and_(known, MODRM), 0)):
        operand = _byte(f, at.get())
        at.set(f.add(at.get(), f.add(1, _operand_size(f, operand, _byte(f, at.get(), 1)))))
        without = f.both(f.ne(f.and_(known, SOME), 0), f.ne(f.and_(operand, 0x30), 0))
        immediate.set(f.select(without, 0, immediate.get()))
    f.ret(f.add(f.sub(at.get(), start), immediate.get()))
    return f


def _operand_size(f: Function, operand: Value, base: Value) -> Value:
    """Return the bytes behind a ModRM byte; `base`: the first of them."""
    mode, register = f.lshr(operand, 6), f.and_(operand, 7)
    memory = f.ne(mode, 3)
    index = f.both(memory, f.eq(register, 4))
    bare = f.eq(f.select(index, f.and_(base, 7), register), 5)
    distance = f.select(f.eq(mode, 1), 1, f.select(f.eq(mode, 2), 4, f.select(bare, 4, 0)))
    return f.select(memory, f.add(f.flag(index), distance), 0)


def _write_sum(f: Function) -> Function:
    """Write u64 shorten_sum(address, size): the bytes of the move behind a sum that took its place."""
    place, size = f.parameters
    rex, opcode, operand = (_byte(f, place, offset) for offset in range(3))
    f.ret_if(f.ne(f.and_(rex, 0xF8), 0x48), 0)
    registers = f.eq(f.and_(operand, 0xC0), 0xC0)
    field = _one_of(f, f.and_(operand, 0x38), _SUM_FIELDS)
    first = f.both(f.both(_one_of(f, opcode, _IMMEDIATE_SUMS), registers), field)
    other = f.either(f.both(_one_of(f, opcode, _SUMS), registers), f.eq(opcode, _LEA))
    f.ret_if(f.fails(f.either(first, other)), 0)
    number = f.select(first, f.and_(operand, 7), f.and_(f.lshr(operand, 3), 7))
    upper = f.select(first, f.and_(rex, 1), f.and_(f.lshr(rex, 2), 1))
    behind = f.add(place, size)
    # mov %ebx,%ebx or, with a prefix, mov %r12d,%r12d
    move = f.or_(0xC08B, f.shl(f.mul(number, 9), 8))
    short = f.both(f.eq(upper, 0), f.eq(f.load(behind, 0, 2), move))
    long = f.both(f.ne(upper, 0), f.eq(f.load(behind, 0, 3), f.or_(0x45, f.shl(move, 8))))
    f.ret_if(f.fails(f.either(short, long)), 0)
    more = f.select(short, 2, 3)
    at = f.variable(size)
    with f.loop() as loop:
        loop.leave_if(f.eq(at.get(), 0))
        at.set(f.sub(at.get(), 1))
        moved = f.add(place, at.get())
        f.store(f.add(moved, more), _byte(f, moved), 0, 1)
    f.store(f.add(place, more), f.and_(rex, 0xF7), 0, 1)
    f.store(place, _PREFIX, 0, 1)
    f.store(place, _PREFIX, 1, 1)
    with f.when(long):
        f.store(place, _PREFIX, 2, 1)
    f.ret(more)
    return f


def _write_access(module: Module) -> Function:
    """Write u64 shorten_access(address, end): the size of an access there; 0: none is known."""
    f = module.function("shorten_access", 2, local=True)
    access = _matched_access(f, *f.parameters)
    # The instruction: a prefix, REX, the opcode, and the operand (%rsi).
    at = f.variable(access.code)
    small = f.eq(_byte(f, at.get()), 0x66)
    at.set(f.add(at.get(), f.flag(small)))
    rex = f.variable(0)
    with f.when(f.eq(f.and_(_byte(f, at.get()), 0xF0), 0x40)):
        rex.set(_byte(f, at.get()))
        at.set(f.add(at.get(), 1))
    opcode, second = _byte(f, at.get()), _byte(f, at.get(), 1)
    escaped = f.eq(opcode, 0x0F)
    known = f.either(_one_of(f, opcode, _ACCESSES), f.both(escaped, _one_of(f, second, _SECOND_ACCESSES)))
    operand = _byte(f, f.add(at.get(), f.flag(escaped)), 1)
    f.ret_if(f.fails(f.both(known, f.eq(f.and_(operand, 0xC7), 6))), 0)
    end = f.add(at.get(), f.add(2, f.flag(escaped)))
    miss = _matched_miss(f, access)
    # One byte more for the register of the address, and REX for its upper bit.
    extended = f.both(f.ne(access.upper, 0), f.eq(rex.get(), 0))
    spare = f.sub(2, f.flag(extended))
    compare = f.load(access.compare, 0, 4)
    unequal = f.add(f.add(access.compare, access.compare_size), 3)
    distance = f.load(unequal, 2, 4)
    to = f.variable(access.compare)

    def put(value: Word, size: Word = 1, width: int = 1) -> None:
        f.store(to.get(), value, 0, width)
        to.set(f.add(to.get(), size))

    put(_PREFIX)
    with f.when(f.eq(spare, 2)):
        put(_PREFIX)
    # Of the four bytes, the last may be none of the comparison; it is written again.
    put(compare, access.compare_size, 4)
    put(_UNEQUAL, 2, 2)
    put(f.add(distance, f.sub(3, spare)), 4, 4)
    put(_PLACE, 4, 4)
    with f.when(small):
        put(0x66)
    indexed = f.or_(rex.get(), f.select(f.ne(access.upper, 0), 0x42, 0))
    with f.when(f.ne(indexed, 0)):
        put(indexed)
    put(opcode)
    with f.when(escaped):
        put(second)
    put(f.or_(f.and_(operand, 0x38), 4))
    put(f.or_(f.shl(access.number, 3), 6))
    _put_miss(f, access, miss)
    f.ret(f.sub(end, f.parameters[0]))
    return f


def _matched_access(f: Function, place: Value, end: Value) -> _Access:
    """Return the parts of a load or a store; where there is none, the function returns 0."""
    f.ret_if(f.ugt(f.add(place, _ROOM), end), 0)
    rex, number = _byte(f, place), f.and_(_byte(f, place, 2), 7)
    upper = f.and_(rex, 1)
    # The registers 4 to 7 are the stack, the CPU state and those that the lookup changes.
    usable = f.either(f.ne(upper, 0), f.ult(number, _RSP))
    moved = f.both(f.eq(_byte(f, place, 1), 0x8B), f.eq(f.and_(_byte(f, place, 2), 0xF8), 0xF8))
    f.ret_if(f.fails(_all(f, (f.eq(f.and_(rex, 0xFE), 0x48), moved, usable))), 0)
    mask = f.add(place, 7)
    table = f.add(mask, _with_distance(f, mask))
    last = f.add(table, _with_distance(f, table))
    index = (f.eq(f.load(place, 3, 4), _SHIFT), _on_cpu(f, mask, _MASK), _on_cpu(f, table, _TABLE))
    f.ret_if(f.fails(_all(f, index)), 0)
    # lea 3(%address),%rsi or, for a byte, mov %address,%rsi
    plain = f.eq(f.load(last, 0, 3), _address_moved(f, number, upper))
    stack = f.eq(number, _RSP)
    lea = f.eq(f.load(last, 0, 3), f.or_(f.or_(0x708D48, upper), f.shl(number, 16)))
    based = f.both(stack, f.eq(_byte(f, last, 3), 0x24))
    added = f.both(lea, f.either(f.ne(number, _RSP), based))
    f.ret_if(f.fails(f.either(plain, added)), 0)
    masked = f.add(last, f.select(plain, 3, f.select(stack, 5, 4)))
    compare = f.add(masked, 7)
    kind = _byte(f, compare, 2)
    compares = f.both(f.eq(f.load(compare, 0, 2), _COMPARE), _one_of(f, kind, (0x37, 0x77)))
    f.ret_if(f.fails(f.both(f.eq(f.load(masked, 0, 3), _AND), compares)), 0)
    size = f.select(f.eq(kind, 0x37), 3, 4)
    copied = f.add(compare, size)
    unequal = f.both(f.eq(f.load(copied, 0, 3), _address_moved(f, number, upper)), f.eq(f.load(copied, 3, 2), _UNEQUAL))
    f.ret_if(f.fails(f.both(unequal, f.eq(f.load(copied, 9, 4), _ADDEND))), 0)
    miss = f.add(f.add(copied, 9), f.load(copied, 5, 4, signed=True))
    f.ret_if(f.either(f.ule(miss, copied), f.ugt(f.add(miss, _MISS), end)), 0)
    return _Access(compare, size, miss, number, upper, f.add(copied, 13))


def _on_cpu(f: Function, place: Value, form: int) -> Condition:
    """Return whether an instruction with an operand in the CPU state has this form."""
    return _one_of(f, f.load(place, 0, 3), (form, form ^ _FAR))


def _with_distance(f: Function, place: Value) -> Value:
    """Return the size of such an instruction."""
    return f.select(f.eq(f.and_(_byte(f, place, 2), 0xC0), 0x40), 4, 7)


class _Miss(NamedTuple):
    """The parts of the code for a miss."""

    value: Value
    """Three bytes, which begin with the move of a store's value."""
    value_size: Value
    operation: Value
    pop: Value
    """What takes the operation from the stack."""


def _matched_miss(f: Function, access: _Access) -> _Miss:
    """Return the parts of the code for a miss; where it is not known, the function returns 0."""
    behind = f.add(access.miss, 3)
    value = f.load(behind, 0, 3)
    first, second, third = (_byte(f, behind, offset) for offset in range(3))
    loads = f.eq(first, 0xBA)
    # mov %value,%edx, with REX or without; none if it is there already
    extended = _all(f, (f.eq(f.and_(first, 0xF0), 0x40), f.eq(second, 0x8B), f.eq(f.and_(third, 0xF8), 0xD0)))
    moved = f.both(f.eq(first, 0x8B), f.eq(f.and_(second, 0xF8), 0xD0))
    size = f.select(extended, 3, f.select(moved, 2, 0))
    number = f.add(behind, size)
    stores = f.eq(_byte(f, number), 0xB9)
    operation = f.load(number, 1, 4)
    form = f.both(f.eq(f.load(access.miss, 0, 3), _ENV), f.either(loads, stores))
    f.ret_if(f.fails(f.both(form, f.ule(operation, _SHORT))), 0)
    return _Miss(value, size, operation, f.select(loads, _POP_RDX, _POP_RCX))


def _put_miss(f: Function, access: _Access, miss: _Miss) -> None:
    """Write the code for a miss, in the place of the old one."""
    f.store(access.miss, _address_moved(f, access.number, access.upper), 0, 3)
    f.store(access.miss, _PUSH_POP_PUSH, 3, 2)
    f.store(access.miss, miss.value, 5, 3)
    number = f.add(f.add(access.miss, 5), miss.value_size)
    f.store(number, _PUSH_POP_PUSH >> 16, 0, 1)
    f.store(number, miss.operation, 1, 1)
    f.store(number, miss.pop, 2, 1)


def _address_moved(f: Function, number: Value, upper: Value) -> Value:
    """Return the three bytes of mov %address,%rsi."""
    return f.or_(f.or_(0xF08B48, upper), f.shl(number, 16))


def _byte(f: Function, address: Word, offset: int = 0) -> Value:
    return f.load(address, offset, 1)


def _one_of(f: Function, value: Value, known: Iterable[int]) -> Condition:
    """Return whether a value is one of these."""
    return reduce(f.either, [f.eq(value, one) for one in known])


def _all(f: Function, conditions: Iterable[Condition]) -> Condition:
    """Return whether all are true."""
    return reduce(f.both, conditions)
