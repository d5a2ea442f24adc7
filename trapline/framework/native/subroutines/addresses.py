"""Subroutines on Internet addresses, in machine code; `framework.dif.inet` defines them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.native.builder import Callee, Function
from emu.native.values import Condition, Value, Word
from trapline.framework.base.dif import Subr
from trapline.framework.dif.inet import AF_INET, AF_INET6
from trapline.framework.dif.text_subroutines import IPV4_SPACE, IPV6_SPACE
from trapline.framework.native.subroutines.writer import FromEnd, Writer, Writing

_WORD: Final = 8
_DECIMAL, _HEXADECIMAL = 10, 16
_COLON, _DOT = ord(":"), ord(".")
# The groups of an IPv6 address, and those before an embedded IPv4 address.
_GROUPS, _BEFORE = 8, 6


def _inet_ntoa(w: Writing) -> None:
    _ipv4(w, w.argument(0))


def _ipv4(w: Writing, source: Word) -> None:
    f = w.f
    w.unless(f.ne(f.and_(source, 3), 0))
    found = f.call(Callee("reach"), source, 4)
    w.unless(f.eq(found, 0))
    quad = f.load(found, size=4)
    text = FromEnd(w, IPV4_SPACE)
    _put_quad(f, text, quad)
    text.ret()


def _put_quad(f: Function, text: FromEnd, quad: Word) -> None:
    """Write four bytes, the first of which is the lowest of the word."""
    for byte in (3, 2, 1, 0):
        text.number(f.and_(f.lshr(quad, 8 * byte), 0xFF), _DECIMAL)
        if byte:
            text.put(_DOT)


class _Address:
    """An IPv6 address under conversion: its groups as numbers, and its bytes."""

    def __init__(self, w: Writing, source: Word) -> None:
        self._f = f = w.f
        found = f.call(Callee("reach"), source, 2 * _GROUPS)
        w.unless(f.eq(found, 0))
        self._groups = f.buffer(_WORD * _GROUPS)
        for number in range(_GROUPS):
            high, low = f.load(found, 2 * number, 1), f.load(found, 2 * number + 1, 1)
            f.store(self._groups, f.or_(f.shl(high, 8), low), _WORD * number)
        self.quad = f.load(found, 2 * _BEFORE, 4)
        """The bytes that may be an IPv4 address."""
        first, second, marked = f.load(found), f.load(found, 8, 2), f.load(found, 10, 2)
        empty = f.eq(f.or_(first, second), 0)
        mapped = f.both(empty, f.eq(marked, 0xFFFF))
        special = f.either(f.eq(self.quad, 0), f.eq(self.quad, 1 << 24))  # :: and ::1
        compatible = f.both(f.both(empty, f.eq(marked, 0)), f.fails(special))
        self.embeds: Condition = f.either(mapped, compatible)
        """Whether they are."""

    def _group(self, number: Word) -> Value:
        return self._f.load(self._f.add(self._groups, self._f.shl(number, 3)))

    def _zeros(self) -> tuple[Value, Value]:
        """Return start and end of the groups to be omitted (`inet.zero_run`)."""
        f = self._f
        start, end, first, last, most = (f.variable(number) for number in (0, 0, 0, 0, 1))
        with f.loop() as loop:
            loop.leave_if(f.uge(start.get(), _GROUPS))
            end.set(start.get())
            with f.loop() as zeros:
                zeros.leave_if(f.uge(end.get(), _GROUPS))
                zeros.leave_if(f.ne(self._group(end.get()), 0))
                end.set(f.add(end.get(), 1))
            size = f.shl(f.sub(end.get(), start.get()), 1)
            measured = f.variable(f.sub(size, 1))
            with f.when(f.ult(end.get(), _GROUPS)):
                measured.set(f.add(size, f.flag(f.ult(self._group(end.get()), 0x100))))
            with f.when(f.both(f.ne(size, 0), f.sgt(measured.get(), most.get()))):
                first.set(start.get())
                last.set(end.get())
                most.set(size)
            start.set(f.add(end.get(), 1))
        return first.get(), last.get()

    def put(self, text: FromEnd) -> None:
        """Write the address from its end on."""
        f = self._f
        with f.when(self.embeds):
            _put_quad(f, text, self.quad)
        count = f.select(self.embeds, _BEFORE, _GROUPS)
        first, last = self._zeros()
        # A run that reaches into the embedded address is written out.
        omitted = f.select(f.ugt(last, count), 0, last)
        number, follows = f.variable(count), f.variable(f.flag(self.embeds))
        with f.loop() as loop:
            loop.leave_if(f.eq(number.get(), 0))
            with f.when(f.both(f.eq(number.get(), omitted), f.ne(omitted, 0))):
                text.put(_COLON, _COLON)
                number.set(first)
                follows.set(0)
                loop.again()
            number.set(f.sub(number.get(), 1))
            with f.when(f.ne(follows.get(), 0)):
                text.put(_COLON)
            text.number(self._group(number.get()), _HEXADECIMAL)
            follows.set(1)
        text.ret()


def _inet_ntoa6(w: Writing) -> None:
    address = _Address(w, w.argument(0))
    text = FromEnd(w, IPV6_SPACE)
    with w.f.when(address.embeds):
        _put_quad(w.f, text, address.quad)
        text.ret()
    address.put(text)


def _inet_ntop(w: Writing) -> None:
    f = w.f
    family = f.and_(w.argument(0), 0xFFFF_FFFF)
    with f.when(f.eq(family, AF_INET)):
        _ipv4(w, w.argument(1))
    w.unless(f.ne(family, AF_INET6))
    address = _Address(w, w.argument(1))
    address.put(FromEnd(w, IPV6_SPACE))


ADDRESSES: Final[Mapping[int, Writer]] = {
    Subr.INET_NTOA: _inet_ntoa,
    Subr.INET_NTOA6: _inet_ntoa6,
    Subr.INET_NTOP: _inet_ntop,
}
