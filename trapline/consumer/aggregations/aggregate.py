"""The consumer's aggregations: snapshots are merged into entries.

Source: FreeBSD libdtrace dt_aggregate.c.  A snapshot has the data that were aggregated since the
last switch; the consumer adds them up.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from math import isqrt
from typing import TYPE_CHECKING, Final

from emu.support.words import WORD_MASK
from trapline.consumer.aggregations.distribution import DISTRIBUTIONS, split
from trapline.consumer.text.symbols import address_pair
from trapline.framework.base.device import DeviceError
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from trapline.consumer.text.symbols import Symbols
    from trapline.framework.base.device import AggregationDescription, AggregationSnapshot, RecordDescription

_ID: Final = struct.Struct("<I")
_ADDRESS: Final = struct.Struct("<Q")
_ADDRESSES: Final = struct.Struct("<QQ")


def signed(value: int) -> int:
    """Cut an integer to 64 bits, two's complement."""
    value &= WORD_MASK
    return value - (value >> 63 << 64)


def quotient(value: int, divisor: int) -> int:
    """Divide as C does, toward zero."""
    return value // divisor if (value < 0) == (divisor < 0) else -(-value // divisor)


@dataclass(slots=True)
class Entry:
    """One element of an aggregation: its keys and its value."""

    description: AggregationDescription
    data: bytes
    """The entry in the kernel's form; the keys are at the offsets of their records."""
    words: list[int]
    """The value as signed 64-bit words: one for count, sum, min and max; two for avg; ..."""
    normal: int = 1
    per_cpu: dict[int, list[int]] = field(default_factory=dict)
    """Values by key and CPU, with option aggpercpu."""

    @property
    def action(self) -> ActionKind:
        """The aggregating function."""
        return self.description.records[-1].action

    @property
    def keys(self) -> Sequence[RecordDescription]:
        """The records of the keys, the variable's id left out."""
        return self.description.records[1:-1]

    def key_bytes(self) -> tuple[bytes, ...]:
        """Return the keys as they were recorded: equal keys are equal bytes."""
        return tuple(self.data[key.offset : key.offset + key.size] for key in self.keys)

    def clear(self) -> None:
        """Zero the value, keep the keys.

        The parameters of lquantize and llquantize are not value.
        """
        for words in (self.words, *self.per_cpu.values()):
            words[:] = zero_words(self.action, words)


def scalar(action: ActionKind, words: Sequence[int], normal: int = 1) -> int:
    """Return the number that represents a value: average, standard deviation, or first word."""
    if action is ActionKind.AVG:
        number, total = words
        return quotient(quotient(total, normal), number) if number else 0
    if action is ActionKind.STDDEV:
        return _standard_deviation(words, normal)
    return words[0]


def zero_words(action: ActionKind, words: Sequence[int]) -> list[int]:
    """Return the value that a cleared or missing entry has."""
    parameters = 1 if action in {ActionKind.LQUANTIZE, ActionKind.LLQUANTIZE} else 0
    return [*words[:parameters], *[0] * (len(words) - parameters)]


def _standard_deviation(words: Sequence[int], normal: int) -> int:
    number, total, low, high = words
    if not number:
        return 0
    squares = (low & WORD_MASK) | (high & WORD_MASK) << 64
    average = quotient(quotient(total, normal), number)
    return isqrt(max(squares // (normal * normal) // number - average * average, 0))


def _merge_sum(old: list[int], new: Sequence[int]) -> None:
    old[:] = [signed(a + b) for a, b in zip(old, new, strict=True)]


def _merge_min(old: list[int], new: Sequence[int]) -> None:
    old[0] = min(old[0], new[0])


def _merge_max(old: list[int], new: Sequence[int]) -> None:
    old[0] = max(old[0], new[0])


def _merge_deviation(old: list[int], new: Sequence[int]) -> None:
    squares = sum((words[2] & WORD_MASK) | (words[3] & WORD_MASK) << 64 for words in (old, new))
    old[:] = [signed(old[0] + new[0]), signed(old[1] + new[1]), signed(squares), signed(squares >> 64)]


def _merge_parameterised(old: list[int], new: Sequence[int]) -> None:
    old[1:] = [signed(a + b) for a, b in zip(old[1:], new[1:], strict=True)]


_MERGE: Final[dict[ActionKind, Callable[[list[int], Sequence[int]], None]]] = {
    ActionKind.COUNT: _merge_sum,
    ActionKind.SUM: _merge_sum,
    ActionKind.AVG: _merge_sum,
    ActionKind.QUANTIZE: _merge_sum,
    ActionKind.MIN: _merge_min,
    ActionKind.MAX: _merge_max,
    ActionKind.STDDEV: _merge_deviation,
    ActionKind.LQUANTIZE: _merge_parameterised,
    ActionKind.LLQUANTIZE: _merge_parameterised,
}


class Aggregate:
    """All aggregations of a consumer."""

    def __init__(
        self, describe: Callable[[int], AggregationDescription], symbols: Symbols, *, per_cpu: bool = False
    ) -> None:
        self._describe = describe
        self._symbols = symbols
        self._per_cpu = per_cpu
        self._entries: dict[tuple[int, int, tuple[bytes, ...]], Entry] = {}
        self._modules: dict[str, int] = {}
        self.printed: set[int] = set()
        """Ids of the aggregations printa() has shown: the final dump leaves them out
        (DTRACE_AGD_PRINTED)."""

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries.values())

    def variable(self, variable: int) -> list[Entry]:
        """Return the entries of an aggregation variable."""
        return [entry for entry in self if entry.description.variable == variable]

    def add(self, snapshot: AggregationSnapshot) -> None:
        """Merge a CPU's snapshot."""
        for data in snapshot.entries:
            self._add(snapshot.cpu, data)

    def _add(self, cpu: int, data: bytes) -> None:
        description = self._describe(_ID.unpack_from(data)[0])
        data = self._canonical(description, data)
        value = description.records[-1]
        words = list(struct.unpack_from(f"<{value.size // 8}q", data, value.offset))
        keys = tuple(data[key.offset : key.offset + key.size] for key in description.records[1:-1])
        identity = (description.variable, description.size, keys)
        entry = self._entries.get(identity)
        if entry is None:
            entry = self._entries[identity] = Entry(description, data, words)
        else:
            _MERGE[value.action](entry.words, words)
        if self._per_cpu:
            own = entry.per_cpu.get(cpu)
            if own is None:
                entry.per_cpu[cpu] = list(words)
            else:
                _MERGE[value.action](own, words)

    def _canonical(self, description: AggregationDescription, data: bytes) -> bytes:
        """Replace an address by one that is the same for the whole symbol or module."""
        for key in description.records[1:-1]:
            replace = _CANONICAL.get(key.action)
            if replace is not None:
                data = data[: key.offset] + replace(self, data, key.offset) + data[key.offset + key.size :]
        return data

    def _symbol(self, data: bytes, offset: int) -> bytes:
        return _ADDRESS.pack(self._symbols.kernel_start(_ADDRESS.unpack_from(data, offset)[0]))

    def _module(self, data: bytes, offset: int) -> bytes:
        pc = _ADDRESS.unpack_from(data, offset)[0]
        return _ADDRESS.pack(self._modules.setdefault(self._symbols.kernel_module(pc), pc))

    def _user_symbol(self, data: bytes, offset: int) -> bytes:
        pid, pc = address_pair(data, offset)
        return _ADDRESSES.pack(pid, self._symbols.user_start(pid, pc))

    def _user_module(self, data: bytes, offset: int) -> bytes:
        pid, pc = address_pair(data, offset)
        name = f"{pid}`{self._symbols.user_module(pid, pc)}"
        return _ADDRESSES.pack(pid, self._modules.setdefault(name, pc))

    def clear(self, variable: int) -> None:
        """Zero the values of an aggregation, keep its keys (clear())."""
        for entry in self.variable(variable):
            entry.clear()

    def normalize(self, variable: int, normal: int) -> None:
        """Divide the shown values of an aggregation (normalize(), and denormalize() with 1).

        A normal of 0 would divide by zero; it changes nothing.
        """
        for entry in self.variable(variable):
            entry.normal = normal or entry.normal

    def keep(self, variable: int, entries: Iterable[Entry]) -> None:
        """Remove every entry of an aggregation but these (trunc())."""
        kept = {id(entry) for entry in entries}
        self._entries = {
            identity: entry
            for identity, entry in self._entries.items()
            if entry.description.variable != variable or id(entry) in kept
        }

    def zero(self, variable: int) -> Entry | None:
        """Make an entry without keys and with the value zero.

        None if no such aggregation is known.
        """
        description = self._description(variable)
        if description is None:
            return None
        value = description.records[-1]
        words = [signed(value.argument), *[0] * (value.size // 8 - 1)]
        return Entry(description, b"", zero_words(value.action, words))

    def _description(self, variable: int) -> AggregationDescription | None:
        """Find a variable's description, even if nothing is aggregated yet (ids count from 1)."""
        for entry in self.variable(variable):
            return entry.description
        for number in count(1):
            try:
                description = self._describe(number)
            except DeviceError:
                break
            if description.variable == variable:
                return description
        return None


_CANONICAL: Final = {
    ActionKind.SYM: Aggregate._symbol,  # noqa: SLF001 - the class's own table
    ActionKind.MOD: Aggregate._module,  # noqa: SLF001
    ActionKind.USYM: Aggregate._user_symbol,  # noqa: SLF001
    ActionKind.UMOD: Aggregate._user_module,  # noqa: SLF001
}


def plain_value(action: ActionKind, words: Sequence[int], normal: int = 1) -> int | dict[float, int]:
    """Return a value as plain data: a number, or {lowest value of a bucket: its count}.

    Buckets without counts are left out; the bucket below the range of lquantize and llquantize is
    at minus infinity.  Numbers are normalised, toward zero.
    """
    if action in DISTRIBUTIONS:
        buckets, counts = split(action, words)
        return {edge: quotient(number, normal) for edge, number in zip(buckets.edges, counts, strict=False) if number}
    number = scalar(action, words, normal)
    return number if action in {ActionKind.AVG, ActionKind.STDDEV} else quotient(number, normal)
