"""Aggregation in machine code: finding entries by their keys, and adding one more number.

A buffer is laid out as the kernel's, inside its own memory:

    DATA         entries: id, key, value        8-aligned, from the start
    FREE         key headers                    from `ROOM` downward, the newest first
    TABLE        heads of the hash chains       at the end

Offsets count from `DATA`; 0 ends a chain.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from functools import cache
from struct import Struct
from typing import Any, Final

from emu.native.builder import Function, Module
from emu.native.link import Linked
from emu.native.operations import Value, Word
from emu.support.plain import Pinned
from emu.support.words import WORD_MASK
from trapline.framework.base.blocks import AggregationWord
from trapline.framework.base.program import ActionKind
from trapline.framework.buffers.aggbuffer import (
    ID_SIZE,
    KEY_HEADER,
    TOO_SMALL,
    AggregationBuffer,
    Outcome,
    usable_space,
)
from trapline.framework.buffers.aggfuncs import (
    INT64_MAX,
    QUANTIZE_BUCKETS,
    QUANTIZE_ZERO,
    AggregatingFunction,
    LinearParameters,
    LogLinearParameters,
)
from trapline.framework.native.dif.hash import bucket, hash_function

_WORD: Final = 8
# A key's header: hash, offset of the entry, size of the key, next header of the chain, kind and size of the value.
_HEADER: Final = Struct("<QIIII")
_HASH, _ENTRY, _KEY_SIZE, _NEXT, _KIND = 0, 8, 12, 16, 20
assert _HEADER.size == KEY_HEADER
_KIND_BITS: Final = 8
_LOCATE: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_uint64, ctypes.c_char_p, *(4 * (ctypes.c_uint64,)))
_CLEAR: Final = ctypes.CFUNCTYPE(None, ctypes.c_uint64)


def kind_word(kind: ActionKind, function: AggregatingFunction) -> int:
    """Return the word of a key's header about a value: its size in words, and the function."""
    return function.size // _WORD << _KIND_BITS | kind & (1 << _KIND_BITS) - 1


def _word(word: AggregationWord) -> int:
    return _WORD * word


def _locate(module: Module) -> None:
    """Write `u64 locate(block, key, size, kind, id, initial)`.

    It returns the address of the key's value, which is created if necessary, or an `Outcome`.
    """
    hashing = hash_function(module)
    f = module.function("locate", 6)
    block, key, size, kind, _number, _initial = f.parameters
    room = f.load(block, _word(AggregationWord.ROOM))
    hashed = f.call(hashing, key, size)
    data = f.load(block, _word(AggregationWord.DATA))
    with f.when(f.eq(room, TOO_SMALL & WORD_MASK), likely=False):
        _drop(f, block)
    chain = bucket(f, hashed, f.load(block, _word(AggregationWord.BUCKETS)))
    head = f.add(f.load(block, _word(AggregationWord.TABLE)), f.shl(chain, 3))
    found = f.variable(f.load(head))
    with f.loop() as loop:
        loop.leave_if(f.eq(found.get(), 0))
        header = f.add(data, found.get())
        found.set(f.load(header, _NEXT, 4))
        loop.again_if(f.ne(f.load(header, _HASH), hashed))
        loop.again_if(f.ne(f.load(header, _KEY_SIZE, 4), size))
        theirs = f.add(f.add(data, f.load(header, _ENTRY, 4)), ID_SIZE)
        with f.when(f.same(theirs, key, size), likely=True):
            f.ret_if(f.ne(f.load(header, _KIND, 4), kind), Outcome.OTHER, likely=False)
            f.ret(f.add(theirs, size))
    _create(f, data, head, hashed)


def _create(f: Function, data: Value, head: Value, hashed: Value) -> None:
    """Make the entry that `locate` did not find."""
    block, key, size, kind, number, initial = f.parameters
    last = f.load(block, _word(AggregationWord.OFFSET))
    offset = f.add(last, f.and_(last, ID_SIZE))
    value = f.add(f.add(offset, ID_SIZE), size)
    value_size = f.shl(f.lshr(kind, _KIND_BITS), 3)
    end = f.add(value, value_size)
    free = f.load(block, _word(AggregationWord.FREE))
    with f.when(f.ugt(f.add(end, KEY_HEADER), free), likely=False):
        _drop(f, block)
    place = f.sub(free, KEY_HEADER)
    f.store(block, place, _word(AggregationWord.FREE))
    f.store(block, end, _word(AggregationWord.OFFSET))
    entry = f.add(data, offset)
    f.store(entry, number, 0, ID_SIZE)
    f.copy(f.add(entry, ID_SIZE), key, size)
    first = f.add(data, value)
    f.store(first, initial)
    f.fill(f.add(first, _WORD), 0, f.sub(value_size, _WORD))
    header = f.add(data, place)
    f.store(header, hashed, _HASH)
    f.store(header, offset, _ENTRY, 4)
    f.store(header, size, _KEY_SIZE, 4)
    f.store(header, f.load(head), _NEXT, 4)
    f.store(header, kind, _KIND, 4)
    f.store(head, place)
    f.ret(first)


def _drop(f: Function, block: Value) -> None:
    drops = f.load(block, _word(AggregationWord.DROPS))
    f.store(block, f.add(drops, 1), _word(AggregationWord.DROPS))
    f.ret(Outcome.DROPPED)


def _clear(module: Module) -> None:
    """Write `clear(block)`: forget all entries; only the chains that have any are touched."""
    f = module.function("clear", 1)
    (block,) = f.parameters
    data, room = f.load(block, _word(AggregationWord.DATA)), f.load(block, _word(AggregationWord.ROOM))
    table, buckets = f.load(block, _word(AggregationWord.TABLE)), f.load(block, _word(AggregationWord.BUCKETS))
    place = f.variable(f.load(block, _word(AggregationWord.FREE)))
    with f.loop() as loop:
        loop.leave_if(f.eq(place.get(), room))
        chain = bucket(f, f.load(f.add(data, place.get()), _HASH), buckets)
        f.store(f.add(table, f.shl(chain, 3)), 0)
        place.set(f.add(place.get(), KEY_HEADER))
    f.store(block, room, _word(AggregationWord.FREE))
    f.store(block, 0, _word(AggregationWord.OFFSET))
    f.store(block, f.add(f.load(block, _word(AggregationWord.EPOCH)), 1), _word(AggregationWord.EPOCH))
    f.ret()


def apply(f: Function, kind: ActionKind, argument: int, at: Word, value: Word, increment: Word) -> None:
    """Write the code that adds one more number to the value at an address.

    `argument` has the parameters of lquantize and llquantize.
    """
    if kind in _BUCKETS:
        first, find = _BUCKETS[kind]
        place = f.add(f.add(at, first), f.shl(find(f, argument, value), 3))
        f.store(place, f.add(f.load(place), increment))
    else:
        _SIMPLE[kind](f, at, value)


def _count(f: Function, at: Word, _value: Word) -> None:
    f.store(at, f.add(f.load(at), 1))


def _sum(f: Function, at: Word, value: Word) -> None:
    f.store(at, f.add(f.load(at), value))


def _min(f: Function, at: Word, value: Word) -> None:
    old = f.load(at)
    f.store(at, f.select(f.slt(value, old), value, old))


def _max(f: Function, at: Word, value: Word) -> None:
    old = f.load(at)
    f.store(at, f.select(f.sgt(value, old), value, old))


def _avg(f: Function, at: Word, value: Word) -> None:
    _count(f, at, value)
    _sum(f, f.add(at, _WORD), value)


def _stddev(f: Function, at: Word, value: Word) -> None:
    """Count, total, and the sum of squares in 128 bits."""
    _avg(f, at, value)
    low, high = f.add(at, 2 * _WORD), f.add(at, 3 * _WORD)
    wide = f.value(f"sext i64 {f.word(value)} to i128")
    square = f.value(f"mul i128 {wide}, {wide}")
    least = f.value(f"trunc i128 {square} to i64")
    most = f.value(f"trunc i128 {f.value(f'lshr i128 {square}, 64')} to i64")
    total = f.add(f.load(low), least)
    f.store(high, f.add(f.add(f.load(high), most), f.flag(f.ult(total, least))))
    f.store(low, total)


def _quantize(f: Function, _argument: int, value: Word) -> Value:
    """Return the bucket of a power of two: from the middle as many away as the number has bits."""
    negative = f.slt(value, 0)
    f.module.declare("ctlz", "declare i64 @llvm.ctlz.i64(i64, i1)")
    size = f.select(negative, f.neg(value), value)
    bits = f.sub(64, f.value(f"call i64 @llvm.ctlz.i64(i64 {size}, i1 false)"))
    bucket_ = f.select(negative, f.sub(QUANTIZE_ZERO, bits), f.add(QUANTIZE_ZERO, bits))
    bucket_ = f.select(f.slt(bucket_, 0), 0, bucket_)
    return f.select(f.sgt(bucket_, QUANTIZE_BUCKETS - 1), QUANTIZE_BUCKETS - 1, bucket_)


def _linear(f: Function, argument: int, value: Word) -> Value:
    """Return the bucket of lquantize, for which a number has 32 bits."""
    parameters = LinearParameters.decode(argument)
    number = f.low(value, 4, signed=True)
    level = f.udiv(f.sub(number, parameters.base), parameters.step)
    last = f.select(f.ugt(level, parameters.levels), parameters.levels, level)
    return f.select(f.slt(number, parameters.base), 0, f.add(last, 1))


def _log_linear(f: Function, argument: int, value: Word) -> Value:
    """Return the bucket of llquantize; the magnitudes are known here, so they become comparisons."""
    parameters = LogLinearParameters.decode(argument)
    magnitudes = parameters.magnitudes
    if not magnitudes:
        return f.word(0)
    result, end = f.variable(0), f.label()
    f.branch_to(f.slt(value, magnitudes[0].start), end)
    for magnitude in magnitudes:
        result.set(f.add(f.udiv(f.sub(value, magnitude.start), magnitude.width), magnitude.first))
        if magnitude.end > INT64_MAX:
            break
        f.branch_to(f.slt(value, magnitude.end), end)
    else:
        result.set(parameters.overflow)
    f.at(end)
    return result.get()


_SIMPLE: Final[Mapping[ActionKind, Callable[[Function, Word, Word], None]]] = {
    ActionKind.COUNT: _count,
    ActionKind.SUM: _sum,
    ActionKind.MIN: _min,
    ActionKind.MAX: _max,
    ActionKind.AVG: _avg,
    ActionKind.STDDEV: _stddev,
}
# Offset of the first bucket, and how the bucket of a number is found.
_BUCKETS: Final[Mapping[ActionKind, tuple[int, Callable[[Function, int, Word], Value]]]] = {
    ActionKind.QUANTIZE: (0, _quantize),
    ActionKind.LQUANTIZE: (_WORD, _linear),
    ActionKind.LLQUANTIZE: (_WORD, _log_linear),
}


@cache
def library() -> Linked:
    """Return the functions `locate` and `clear`, which all consumers share."""
    module = Module()
    _locate(module)
    _clear(module)
    return Linked(module.compiled("aggregation"))


@cache
def _callable(name: str) -> Any:
    prototype: Any = {"locate": _LOCATE, "clear": _CLEAR}[name]
    return prototype(library().address(name))


class SharedAggregationBuffer(AggregationBuffer):
    """An aggregation buffer that machine code works on; Python works on it by the same functions.

    It may begin with the content of another buffer.
    """

    def __init__(self, size: int, old: AggregationBuffer | None = None) -> None:
        super().__init__(size)
        usable, buckets = usable_space(size)
        self._pinned = Pinned(self.data)
        self.words[AggregationWord.DATA] = self._pinned.address
        self.words[AggregationWord.SIZE] = size
        self.words[AggregationWord.EPOCH] = 1
        self.words[AggregationWord.ROOM] = self.words[AggregationWord.FREE] = usable & WORD_MASK
        self.words[AggregationWord.BUCKETS] = buckets
        self.words[AggregationWord.TABLE] = self.words[AggregationWord.DATA] + size - buckets * _WORD
        self._locate = _callable("locate")
        self._clear = _callable("clear")
        if old is not None:
            self._take_over(old)

    def _take_over(self, old: AggregationBuffer) -> None:
        self.drops = old.drops
        for key, (place, kind, size) in old.entries.items():
            number = int.from_bytes(old.data[place - len(key) - ID_SIZE : place - len(key)], "little")
            word = size // _WORD << _KIND_BITS | kind & (1 << _KIND_BITS) - 1
            self._locate(self.address, key, len(key), word, number, 0)
            self.data[place : place + size] = old.data[place : place + size]

    def locate(self, key: bytes, kind: ActionKind, number: int, function: AggregatingFunction) -> int:
        """Return the offset of a key's value, made if there was none, or an `Outcome` below 0."""
        found: int = self._locate(self.address, key, len(key), kind_word(kind, function), number, function.initial)
        return found - self.words[AggregationWord.DATA] if found > Outcome.OTHER else -found

    def _take_entries(self) -> tuple[bytes, ...]:
        """Return the entries in the order they were made, and forget them."""
        words, data = self.words, self.data
        if words[AggregationWord.ROOM] == TOO_SMALL & WORD_MASK:
            return ()
        headers = bytes(data[words[AggregationWord.FREE] : words[AggregationWord.ROOM]])
        entries = [
            bytes(data[entry : entry + ID_SIZE + key_size + (kind >> _KIND_BITS) * _WORD])
            for _hash, entry, key_size, _next, kind in _HEADER.iter_unpack(headers)
        ]
        entries.reverse()
        self._clear(self.address)
        return tuple(entries)
