"""The x87's remainders and transcendental functions, by the manual's tables.

QEMU 5 computes them with the host's `double`, so that even `fmod` of i386's C library, which must
be exact, was wrong in its last digits (target/i386/fpu_helper.c of Unicorn 2.1.4).  Remainders are
exact here; the other results are those of exact arithmetic, rounded once: the manual allows an
error of one unit in the last place (Intel SDM volume 1, 8.3.10), and a program has the same results
on every host.  The value of pi is the CPU's own, of 66 bits (8.3.8).

Source of the special cases: the tables of each instruction in Intel SDM volume 2.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from decimal import Decimal
from enum import IntEnum
from functools import cache
from typing import Final, NamedTuple

from emu.isa.unicorn_model import ServingCpu

_BIAS: Final = 0x3FFF
_SPECIAL: Final = 0x7FFF
_INTEGER_BIT: Final = 1 << 63
_QUIET_BIT: Final = 1 << 62
_WORD: Final = (1 << 64) - 1
# The exceptions of the status word, and its condition codes.
INVALID, DENORMAL, ZERO_DIVIDE, OVERFLOW, UNDERFLOW, PRECISION = (1 << bit for bit in range(6))
C0, C1, C2, C3 = 1 << 8, 1 << 9, 1 << 10, 1 << 14
CONDITIONS: Final = C0 | C1 | C2 | C3
# Trigonometric functions take arguments whose exponent is smaller.
_LARGE: Final = _BIAS + 63
# Remainders are complete if the exponents differ by less; otherwise that much is done, at most.
_COMPLETE: Final = 64
# Bits of a result before it is rounded.
_GUARDED: Final = 130
# The CPU's pi: 0.C90FDAA22168C234C times four.
_PI: Final = (0xC_90FD_AA22_168C_234C, 66)
_EXACT: Final = decimal.Context(prec=48, Emax=1_000_000, Emin=-1_000_000, traps=[decimal.InvalidOperation])
_TINY: Final = Decimal("1e-14")


class Rounding(IntEnum):
    """RC of the control word."""

    NEAREST = 0
    DOWN = 1
    UP = 2
    ZERO = 3


class Extended(NamedTuple):
    """A number of 80 bits."""

    sign: int
    exponent: int
    mantissa: int

    @property
    def is_nan(self) -> bool:
        """Whether it is a NaN, or an encoding that the CPU takes for an invalid operand."""
        if self.exponent == _SPECIAL:
            return self.mantissa != _INTEGER_BIT
        return self.exponent != 0 and not self.mantissa & _INTEGER_BIT

    @property
    def is_signalling(self) -> bool:
        """Whether an operation on it is invalid."""
        return self.is_nan and (self.mantissa & (_INTEGER_BIT | _QUIET_BIT)) != _INTEGER_BIT | _QUIET_BIT

    @property
    def is_infinite(self) -> bool:
        """Whether it is an infinity."""
        return self.exponent == _SPECIAL and self.mantissa == _INTEGER_BIT

    @property
    def is_zero(self) -> bool:
        """Whether it is a zero."""
        return not self.exponent and not self.mantissa

    @property
    def is_denormal(self) -> bool:
        """Whether its exponent is the smallest."""
        return not self.exponent and self.mantissa != 0

    @property
    def scale(self) -> int:
        """The power of two of the mantissa's last bit."""
        return max(self.exponent, 1) - _BIAS - 63

    def value(self) -> Decimal:
        """Return the number, without its sign."""
        return _EXACT.multiply(Decimal(self.mantissa), _power_of_two(self.scale))


class Result(NamedTuple):
    """What an instruction leaves: the new ST(0), or ST(1) where that is popped."""

    number: Extended
    status: int = 0
    """Exceptions and condition codes."""
    pushed: Extended | None = None
    """A second number, pushed over it."""


_DEFAULT: Final = Extended(1, _SPECIAL, _INTEGER_BIT | _QUIET_BIT)
_ONE: Final = Extended(0, _BIAS, _INTEGER_BIT)


@cache
def _power_of_two(exponent: int) -> Decimal:
    return _EXACT.power(Decimal(2), exponent)


@cache
def _logarithm_of_two() -> Decimal:
    return _EXACT.ln(Decimal(2))


@cache
def _pi() -> Decimal:
    """Return pi itself: results are angles, which have nothing to do with the CPU's reduction."""
    # Machin: 16 atan(1/5) - 4 atan(1/239).
    with decimal.localcontext(_EXACT):
        return 16 * _series(Decimal(1) / 5) - 4 * _series(Decimal(1) / 239)


def _series(x: Decimal) -> Decimal:
    """Return the arc tangent of a small number; in the exact context."""
    square, power, total, number = -x * x, x, x, 1
    while True:
        power *= square
        number += 2
        following = total + power / number
        if following == total:
            return total
        total = following


# -- rounding


def _infinite(sign: int) -> Extended:
    return Extended(sign, _SPECIAL, _INTEGER_BIT)


def _zero(sign: int) -> Extended:
    return Extended(sign, 0, 0)


def _rounded(sign: int, number: int, exponent: int, rounding: Rounding, *, more: bool) -> Result:
    """Round `number` (not 0) times two to the power of `exponent`; `more`: a little more than that."""
    biased = exponent + number.bit_length() - 1 + _BIAS
    drop = number.bit_length() - 64
    if biased < 1:
        drop, biased = drop + 1 - biased, 0
    mantissa = number >> drop if drop > 0 else number << -drop
    rest = number - (mantissa << drop) if drop > 0 else 0
    inexact = bool(rest) or more
    up = _goes_up(sign, mantissa, rest, 1 << drop - 1 if drop > 0 else 1, rounding, inexact=inexact, more=more)
    mantissa += up
    if mantissa >> 64:
        mantissa, biased = mantissa >> 1, biased + 1
    if not biased and mantissa & _INTEGER_BIT:
        biased = 1
    status = (PRECISION | C1 * up) if inexact else 0
    if biased >= _SPECIAL:
        to_infinity = rounding in (Rounding.NEAREST, Rounding.DOWN if sign else Rounding.UP)
        largest = _infinite(sign) if to_infinity else Extended(sign, _SPECIAL - 1, _WORD)
        return Result(largest, OVERFLOW | PRECISION | C1 * to_infinity)
    return Result(Extended(sign, biased, mantissa), status | (UNDERFLOW if inexact and not biased else 0))


def _goes_up(sign: int, mantissa: int, rest: int, half: int, rounding: Rounding, *, inexact: bool, more: bool) -> bool:
    if rounding is Rounding.NEAREST:
        return rest > half or (rest == half and (more or bool(mantissa & 1)))
    return inexact and rounding is (Rounding.DOWN if sign else Rounding.UP)


def _near(sign: int, value: Decimal, rounding: Rounding) -> Result:
    """Round a positive value that is not exact."""
    above, below = value.as_integer_ratio()
    shift = _GUARDED - above.bit_length() + below.bit_length()
    quotient = (above << shift) // below if shift >= 0 else above // (below << -shift)
    return _rounded(sign, quotient, -shift, rounding, more=True)


# -- operands


def _invalid() -> Result:
    return Result(_DEFAULT, INVALID)


def _of_nans(*operands: Extended) -> Result | None:
    """Return the result if an operand is a NaN: the one with the larger significand, quieted."""
    nans = [operand for operand in operands if operand.is_nan]
    if not nans:
        return None
    status = INVALID if any(nan.is_signalling for nan in nans) else 0
    if any(nan.exponent != _SPECIAL or not nan.mantissa & _INTEGER_BIT for nan in nans):
        return Result(_DEFAULT, INVALID)  # not a number of any kind
    if len(nans) > 1 and nans[0].is_signalling != nans[1].is_signalling:
        nans = [nan for nan in nans if not nan.is_signalling]
    sign, exponent, mantissa = max(nans, key=lambda nan: (nan.mantissa, -nan.sign))
    return Result(Extended(sign, exponent, mantissa | _QUIET_BIT), status)


# -- remainders


def _remainder(x: Extended, y: Extended, *, nearest: bool) -> Result:
    if x.is_infinite or y.is_zero:
        return _invalid()
    if y.is_infinite or x.is_zero:
        return Result(x)
    scale = min(x.scale, y.scale)
    dividend, divisor = x.mantissa << x.scale - scale, y.mantissa << y.scale - scale
    apart = (
        (dividend.bit_length() - divisor.bit_length()) if x.is_denormal or y.is_denormal else x.exponent - y.exponent
    )
    if apart >= _COMPLETE:
        part = apart - (32 | apart % 32)
        rest = dividend % (divisor << part)
        return Result(_exact(x.sign, rest, scale), C2)
    quotient, rest = divmod(dividend, divisor)
    sign = x.sign
    if nearest and (2 * rest > divisor or (2 * rest == divisor and quotient & 1)):
        quotient, rest, sign = quotient + 1, divisor - rest, 1 - sign
    conditions = C0 * (quotient >> 2 & 1) | C3 * (quotient >> 1 & 1) | C1 * (quotient & 1)
    return Result(_exact(sign if rest else x.sign, rest, scale), conditions)


def _exact(sign: int, number: int, exponent: int) -> Extended:
    """Return a number that has no more bits than an operand."""
    return _rounded(sign, number, exponent, Rounding.ZERO, more=False).number if number else _zero(sign)


def fprem(st0: Extended, st1: Extended, _rounding: Rounding) -> Result:
    """Return the remainder of ST(0) and ST(1), or a part of it, with C2; the quotient is truncated."""
    return _remainder(st0, st1, nearest=False)


def fprem1(st0: Extended, st1: Extended, _rounding: Rounding) -> Result:
    """Return the remainder of IEEE 754: the quotient is the nearest integer."""
    return _remainder(st0, st1, nearest=True)


# -- logarithms and powers


def fyl2x(st0: Extended, st1: Extended, rounding: Rounding) -> Result:
    """Return ST(1) times the logarithm to the base of two of ST(0)."""
    if st0.is_zero:
        if st1.is_zero:
            return _invalid()
        return Result(_infinite(1 - st1.sign), 0 if st1.is_infinite else ZERO_DIVIDE)
    if st0.sign:
        return _invalid()
    if st0.is_infinite:
        return _invalid() if st1.is_zero else Result(_infinite(st1.sign))
    exponent = st0.scale + st0.mantissa.bit_length() - 1
    power = st0.mantissa == 1 << st0.mantissa.bit_length() - 1
    if power and not exponent:
        return _invalid() if st1.is_infinite else Result(_zero(st1.sign))
    sign = st1.sign ^ (exponent < 0)
    if st1.is_infinite or st1.is_zero:
        return Result(st1._replace(sign=sign))
    if power:
        return _rounded(sign, st1.mantissa * abs(exponent), st1.scale, rounding, more=False)
    with decimal.localcontext(_EXACT):
        logarithm = _EXACT.ln(st0.value()) / _logarithm_of_two()
        return _near(sign, st1.value() * abs(logarithm), rounding)


def fyl2xp1(st0: Extended, st1: Extended, rounding: Rounding) -> Result:
    """Return ST(1) times the logarithm to the base of two of ST(0) + 1."""
    sign = st0.sign ^ st1.sign
    if st0.is_zero:
        return _invalid() if st1.is_infinite else Result(_zero(sign))
    if st0.is_infinite:
        return _invalid() if st0.sign or st1.is_zero else Result(_infinite(sign))
    with decimal.localcontext(_EXACT):
        x = st0.value() * (-1) ** st0.sign
        if x <= -1:
            return _invalid()
        if st1.is_infinite or st1.is_zero:
            return Result(st1._replace(sign=sign))
        # Close to 0 the sum would have no digits of it left.
        logarithm = x - x * x / 2 + x * x * x / 3 if abs(x) < _TINY else _EXACT.ln(1 + x)
        return _near(sign, st1.value() * abs(logarithm) / _logarithm_of_two(), rounding)


def f2xm1(st0: Extended, _st1: Extended, rounding: Rounding) -> Result:
    """Return two to the power of ST(0), less one, for ST(0) from -1 to 1; others stay as they are."""
    if st0.is_zero:
        return Result(st0)
    if st0.is_infinite:
        return Result(_ONE._replace(sign=1) if st0.sign else st0)
    if (st0.exponent, st0.mantissa) == _ONE[1:]:
        return Result(Extended(1, _BIAS - 1, _INTEGER_BIT) if st0.sign else st0)
    if st0.exponent >= _BIAS:
        return Result(st0, PRECISION)  # undefined in the manual; as AMD's do
    with decimal.localcontext(_EXACT):
        x = st0.value() * (-1) ** st0.sign * _logarithm_of_two()
        power = x + x * x / 2 + x * x * x / 6 if abs(x) < _TINY else _EXACT.exp(x) - 1
        return _near(st0.sign, abs(power), rounding)


# -- trigonometry


def fpatan(st0: Extended, st1: Extended, rounding: Rounding) -> Result:
    """Return the angle of the point (ST(0), ST(1))."""
    sign = st1.sign
    with decimal.localcontext(_EXACT):
        if st1.is_zero or (st0.is_infinite and not st1.is_infinite):
            return _near(sign, _pi(), rounding) if st0.sign else Result(_zero(sign))
        if st0.is_infinite:
            return _near(sign, _pi() * (3 if st0.sign else 1) / 4, rounding)
        if st1.is_infinite or st0.is_zero:
            return _near(sign, _pi() / 2, rounding)
        x, y = st0.value(), st1.value()
        angle = _arc_tangent(y / x) if y <= x else _pi() / 2 - _arc_tangent(x / y)
        return _near(sign, _pi() - angle if st0.sign else angle, rounding)


def _arc_tangent(x: Decimal) -> Decimal:
    """Return the arc tangent of a number up to 1; in the exact context."""
    halvings = 0
    while x > Decimal("0.05"):
        x = x / (1 + (1 + x * x).sqrt())
        halvings += 1
    return _series(x) * 2**halvings


def _reduced(x: Extended) -> tuple[Decimal, int]:
    """Return what is left of an angle after so many quarter turns of the CPU's pi."""
    pi, digits = _PI
    # In units of the last bit of x, or of the quarter turn: all are integers.
    unit = min(x.scale, -digits - 1)
    angle, quarter = x.mantissa << x.scale - unit, pi << -digits + 1 - unit - 2
    turns, rest = divmod(angle, quarter)
    if 2 * rest > quarter:
        turns, rest = turns + 1, rest - quarter
    return _EXACT.multiply(Decimal(rest), _power_of_two(unit)), turns


def _sine_and_cosine(x: Extended) -> tuple[Decimal, Decimal]:
    """Return both functions of a number."""
    with decimal.localcontext(_EXACT):
        rest, turns = _reduced(x)
        sine, cosine = _wave(rest, rest, 1), _wave(Decimal(1), rest, 0)
        for _ in range(turns % 4):
            sine, cosine = cosine, -sine
        return (-sine if x.sign else sine), cosine


def _wave(term: Decimal, x: Decimal, number: int) -> Decimal:
    """Return the series whose first term is given; the next one has `number` + 1 and + 2 below it."""
    square, total = -x * x, term
    while True:
        term = term * square / ((number + 1) * (number + 2))
        number += 2
        if total + term == total:
            return total
        total += term


def _signed(value: Decimal, rounding: Rounding) -> Result:
    return _near(int(value < 0), abs(value), rounding)


def _trigonometric(
    st0: Extended, rounding: Rounding, function: Callable[[Decimal, Decimal], Decimal], at_zero: Extended
) -> Result:
    if st0.is_infinite:
        return _invalid()
    if st0.exponent >= _LARGE:
        return Result(st0, C2)
    if st0.is_zero:
        return Result(at_zero)
    with decimal.localcontext(_EXACT):
        return _signed(function(*_sine_and_cosine(st0)), rounding)


def fsin(st0: Extended, _st1: Extended, rounding: Rounding) -> Result:
    """Return the sine."""
    return _trigonometric(st0, rounding, lambda sine, _: sine, st0)


def fcos(st0: Extended, _st1: Extended, rounding: Rounding) -> Result:
    """Return the cosine."""
    return _trigonometric(st0, rounding, lambda _, cosine: cosine, _ONE)


def fsincos(st0: Extended, st1: Extended, rounding: Rounding) -> Result:
    """Return the sine, with the cosine pushed over it."""
    sine, cosine = fsin(st0, st1, rounding), fcos(st0, st1, rounding)
    # C1 tells of the number on top.
    return _pushing(Result(sine.number, sine.status & ~C1 | cosine.status), cosine.number)


def fptan(st0: Extended, _st1: Extended, rounding: Rounding) -> Result:
    """Return the tangent, with 1 pushed over it."""
    return _pushing(_trigonometric(st0, rounding, lambda sine, cosine: sine / cosine, st0), _ONE)


def _pushing(result: Result, over: Extended) -> Result:
    """Push a number, if the argument was in range; of a NaN there are two."""
    if result.status & C2:
        return result
    return result._replace(pushed=result.number if result.number.is_nan else over)


class Operation(NamedTuple):
    """An instruction."""

    function: Callable[[Extended, Extended, Rounding], Result]
    operands: int
    """The number of operands."""
    pops: bool = False
    """Whether the result replaces ST(1), and ST(0) is popped."""
    conditions: int = C1 | C2
    """The condition codes that it sets or clears."""


# The byte behind d9 -> instruction.
OPERATIONS: Final = {
    0xF0: Operation(f2xm1, 1),
    0xF1: Operation(fyl2x, 2, pops=True),
    0xF2: Operation(fptan, 1),
    0xF3: Operation(fpatan, 2, pops=True),
    0xF5: Operation(fprem1, 2, conditions=CONDITIONS),
    0xF8: Operation(fprem, 2, conditions=CONDITIONS),
    0xF9: Operation(fyl2xp1, 2, pops=True),
    0xFB: Operation(fsincos, 1),
    0xFE: Operation(fsin, 1),
    0xFF: Operation(fcos, 1),
}


def result(code: int, st0: Extended, st1: Extended, rounding: Rounding) -> Result:
    """Return what the instruction with this second byte leaves."""
    operation = OPERATIONS[code]
    operands = (st0, st1)[: operation.operands]
    found = _of_nans(*operands)
    if found is not None:
        return _pushing(found, _ONE) if operation.function in (fsincos, fptan) else found
    found = operation.function(st0, st1, rounding)
    denormal = any(operand.is_denormal for operand in operands) and not found.status & (INVALID | ZERO_DIVIDE)
    return found._replace(status=found.status | DENORMAL * denormal)


_REGISTERS: Final = 8
# TOP of the status word, and RC of the control word.
_TOP, _TOP_MASK = 11, 7
_RC, _RC_MASK = 10, 3
# Exceptions that the control word does not mask set ES and B.
_EXCEPTIONS, _SUMMARY = 0x3F, 0x8080
# Two bits of the tag word for each register: empty, and valid.
_EMPTY, _VALID = 3, 0
_EXPONENT: Final = 0x7FFF


def execute(cpu: ServingCpu, code: int) -> None:
    """Execute the instruction with this second byte, but for the pc.

    An exception that is not masked is raised by a later instruction, as all of them; its result is
    stored nevertheless.  QEMU has no exceptions of a full or an empty stack, and neither has this.
    """
    status, control = cpu.read_register("fpsw"), cpu.read_register("fpcw")
    top = status >> _TOP & _TOP_MASK
    st0, st1 = (_read(cpu, top + number) for number in range(2))
    found = result(code, st0, st1, Rounding(control >> _RC & _RC_MASK))
    if OPERATIONS[code].pops:
        _tag(cpu, top, _EMPTY)
        top += 1
    _write(cpu, top, found.number)
    if found.pushed is not None:
        top -= 1
        _tag(cpu, top, _VALID)
        _write(cpu, top, found.pushed)
    status = status & ~(_TOP_MASK << _TOP) & ~OPERATIONS[code].conditions
    status |= (top & _TOP_MASK) << _TOP | found.status
    if status & ~control & _EXCEPTIONS:
        status |= _SUMMARY
    cpu.write_register("fpsw", status)


def _read(cpu: ServingCpu, number: int) -> Extended:
    mantissa, rest = cpu.read_public(f"fp{number % _REGISTERS}")
    return Extended(rest >> 15, rest & _EXPONENT, mantissa)


def _write(cpu: ServingCpu, number: int, value: Extended) -> None:
    cpu.write_public(f"fp{number % _REGISTERS}", (value.mantissa, value.sign << 15 | value.exponent))


def _tag(cpu: ServingCpu, number: int, tag: int) -> None:
    bit = 2 * (number % _REGISTERS)
    cpu.write_register("fptag", cpu.read_register("fptag") & ~(3 << bit) | tag << bit)
