"""Runs of registers as bytes, each register read and written by a public call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_WORD = 8


class PublicBytes:
    """The bytes of registers of one size, which can be assigned all at once, as `view[:] = data`."""

    def __init__(
        self, numbers: Sequence[int], size: int, read: Callable[[int], Any], write: Callable[[int, Any], None],
        value: Callable[[bytes], Any],
    ) -> None:  # fmt: skip
        """`value` turns the bytes of a register into what `write` takes."""
        self._numbers = numbers
        self._size = size
        self._read = read
        self._write = write
        self._value = value

    def __len__(self) -> int:
        return len(self._numbers) * self._size

    def __bytes__(self) -> bytes:
        return b"".join(self._bytes(self._read(number)) for number in self._numbers)

    def __setitem__(self, _all: slice, data: bytes) -> None:
        for place, number in enumerate(self._numbers):
            self._write(number, self._value(data[place * self._size : (place + 1) * self._size]))

    def _bytes(self, value: Any) -> bytes:
        if isinstance(value, tuple):  # x87: a mantissa of 64 bits, then sign and exponent
            mantissa, rest = value
            return bytes(mantissa.to_bytes(_WORD, "little") + rest.to_bytes(self._size - _WORD, "little"))
        return int(value).to_bytes(self._size, "little")
