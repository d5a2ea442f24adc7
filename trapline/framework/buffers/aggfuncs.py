"""The nine aggregating functions: a value's size, its start, and the effect of one more number.

Source: FreeBSD dtrace.c dtrace_aggregate_count() and the like, dtrace_ecb_aggregation_create();
dtrace.h for the encoding of lquantize's and llquantize's parameters and for quantize's buckets.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from emu.support.immutable import immutable
from emu.support.plain import Bytes
from emu.support.words import WORD_MASK
from trapline.framework.base.program import ActionKind
from trapline.framework.base.world import signed

# (data, offset of the value, number, increment)
Apply = Callable[[Bytes, int, int, int], None]

QUANTIZE_BUCKETS: Final = 127
# Index of the bucket for 0.
QUANTIZE_ZERO: Final = 63
_WORD: Final = 8
_U64: Final = struct.Struct("<Q")
_S64: Final = struct.Struct("<q")
_TWO: Final = struct.Struct("<QQ")
_FOUR: Final = struct.Struct("<QQQQ")
_MASK128: Final = (1 << 128) - 1
INT64_MAX: Final = (1 << 63) - 1
INT64_MIN: Final = -(1 << 63)


class ParameterError(ValueError):
    """lquantize or llquantize with parameters that make no buckets."""


@immutable
class LinearParameters:
    """lquantize's: `step` << 48 | `levels` << 32 | base as 32 bits."""

    step: int
    levels: int
    base: int

    @classmethod
    def decode(cls, argument: int) -> LinearParameters:
        """Decode the word.  Raises ParameterError."""
        base = argument & 0xFFFF_FFFF
        parameters = cls(argument >> 48 & 0xFFFF, argument >> 32 & 0xFFFF, base - (base >> 31 << 32))
        if not parameters.step or not parameters.levels:
            raise ParameterError("lquantize() needs a step and at least one level")
        return parameters

    def bucket(self, value: int) -> int:
        """Return the bucket of a number, which counts as 32 bits."""
        number = (value & 0xFFFF_FFFF) - ((value >> 31 & 1) << 32)
        if number < self.base:
            return 0
        return min((number - self.base) // self.step, self.levels) + 1


@immutable
class LogLinearParameters:
    """llquantize's: `factor` << 48 | `low` << 32 | `high` << 16 | `steps`."""

    factor: int
    low: int
    high: int
    steps: int

    @classmethod
    def decode(cls, argument: int) -> LogLinearParameters:
        """Decode the word.  Raises ParameterError."""
        p = cls(argument >> 48 & 0xFFFF, argument >> 32 & 0xFFFF, argument >> 16 & 0xFFFF, argument & 0xFFFF)
        if p.factor < 2 or p.low >= p.high or p.steps < p.factor:
            raise ParameterError("llquantize() needs factor >= 2, low < high magnitude and steps >= factor")
        power = p.factor
        while power < p.steps:
            power *= p.factor
        if power % p.steps or p.steps % p.factor:
            raise ParameterError("llquantize() needs steps that divide a power of the factor, and are a multiple of it")
        return p

    def bucket(self, value: int) -> int:
        """Return a number's bucket: underflow, at most `steps` for each magnitude, overflow."""
        number = signed(value & WORD_MASK)
        magnitudes = self.magnitudes
        if not magnitudes or number < magnitudes[0].start:
            return 0
        for magnitude in magnitudes:
            if number < magnitude.end:
                return magnitude.first + (number - magnitude.start) // magnitude.width
        return self.overflow

    @property
    def magnitudes(self) -> tuple[Magnitude, ...]:
        """The magnitudes that a number can have, from the smallest."""
        return _magnitudes(self)

    @property
    def overflow(self) -> int:
        """The bucket of numbers beyond all magnitudes, which is the last one."""
        return 0 if not self.magnitudes else self.magnitudes[-1].beyond


@immutable
class Magnitude:
    """Numbers between two powers of llquantize's factor, which share buckets of one width."""

    start: int
    end: int
    """The first number beyond it."""
    width: int
    first: int
    """The bucket of `start`."""
    beyond: int
    """The bucket of numbers from `end` on, if no magnitude follows."""


@lru_cache
def _magnitudes(parameters: LogLinearParameters) -> tuple[Magnitude, ...]:
    found = []
    start, first = parameters.factor**parameters.low, 1
    for _order in range(parameters.low, parameters.high + 1):
        if start > INT64_MAX:
            break
        end = start * parameters.factor
        buckets = min(end, parameters.steps)
        width = end // buckets
        following = first + buckets - buckets // parameters.factor
        if end * parameters.factor > INT64_MAX:
            # No number is beyond the next magnitude: this one is the last that has any, and larger numbers are in its
            # last bucket.
            found.append(Magnitude(start, end, width, first, first + (end - 1 - start) // width))
            break
        found.append(Magnitude(start, end, width, first, following))
        start, first = end, following
    return tuple(found)


def quantize_bucket(value: int) -> int:
    """Return the bucket of a number: the power of two at or below its size, by sign."""
    number = signed(value & WORD_MASK)
    if number < 0:
        return max(QUANTIZE_ZERO - (-number).bit_length(), 0)
    return min(QUANTIZE_ZERO + number.bit_length(), QUANTIZE_BUCKETS - 1)


def _count(data: Bytes, at: int, _value: int, _increment: int) -> None:
    _U64.pack_into(data, at, _U64.unpack_from(data, at)[0] + 1 & WORD_MASK)


def _sum(data: Bytes, at: int, value: int, _increment: int) -> None:
    _U64.pack_into(data, at, _U64.unpack_from(data, at)[0] + value & WORD_MASK)


def _min(data: Bytes, at: int, value: int, _increment: int) -> None:
    _S64.pack_into(data, at, min(_S64.unpack_from(data, at)[0], signed(value)))


def _max(data: Bytes, at: int, value: int, _increment: int) -> None:
    _S64.pack_into(data, at, max(_S64.unpack_from(data, at)[0], signed(value)))


def _avg(data: Bytes, at: int, value: int, _increment: int) -> None:
    count, total = _TWO.unpack_from(data, at)
    _TWO.pack_into(data, at, count + 1 & WORD_MASK, total + value & WORD_MASK)


def _stddev(data: Bytes, at: int, value: int, _increment: int) -> None:
    count, total, low, high = _FOUR.unpack_from(data, at)
    squares = (high << 64 | low) + signed(value) ** 2 & _MASK128
    _FOUR.pack_into(data, at, count + 1 & WORD_MASK, total + value & WORD_MASK, squares & WORD_MASK, squares >> 64)


def _bucketed(bucket: Callable[[int], int], first: int) -> Apply:
    """Make the function that adds to a bucket; `first` is the offset of the first one."""

    def apply(data: Bytes, at: int, value: int, increment: int) -> None:
        place = at + first + _WORD * bucket(value)
        _U64.pack_into(data, place, _U64.unpack_from(data, place)[0] + increment & WORD_MASK)

    return apply


@immutable
class AggregatingFunction:
    """A function with its parameters."""

    size: int
    """Bytes of a value."""
    initial: int
    """First word of a new value; the rest is zero."""
    apply: Apply


_SIMPLE: Final = {
    ActionKind.COUNT: AggregatingFunction(8, 0, _count),
    ActionKind.SUM: AggregatingFunction(8, 0, _sum),
    ActionKind.MIN: AggregatingFunction(8, INT64_MAX, _min),
    ActionKind.MAX: AggregatingFunction(8, INT64_MIN & WORD_MASK, _max),
    ActionKind.AVG: AggregatingFunction(16, 0, _avg),
    ActionKind.STDDEV: AggregatingFunction(32, 0, _stddev),
    ActionKind.QUANTIZE: AggregatingFunction(QUANTIZE_BUCKETS * _WORD, 0, _bucketed(quantize_bucket, 0)),
}


def aggregating_function(kind: ActionKind, argument: int) -> AggregatingFunction:
    """Return a function; `argument` has the parameters of lquantize and llquantize.

    Raises ParameterError.
    """
    simple = _SIMPLE.get(kind)
    if simple is not None:
        return simple
    if kind == ActionKind.LQUANTIZE:
        linear = LinearParameters.decode(argument)
        return AggregatingFunction((linear.levels + 3) * _WORD, argument, _bucketed(linear.bucket, _WORD))
    loglinear = LogLinearParameters.decode(argument)
    buckets = loglinear.bucket(INT64_MAX) + 2
    return AggregatingFunction(buckets * _WORD, argument, _bucketed(loglinear.bucket, _WORD))
