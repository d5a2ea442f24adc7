"""The shortest instruction with a finding: bytes are removed and bits cleared as long as it stays.

Each step is a shorter instruction, or one of the same length with a smaller number, so it ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

# Tries after which the shortest instruction until then is taken.
_MOST: Final = 400


def shrunk(data: bytes, holds: Callable[[bytes], bool], *, one_size: bool) -> bytes:
    """Return the smallest bytes for which a condition holds, as far as single steps lead.

    It holds for `data`.  `one_size`: only bits are cleared, for instructions whose size is fixed.
    """
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _steps(data, one_size=one_size):
            tries += 1
            if tries > _MOST:
                return data
            if holds(candidate):
                data, smaller = candidate, True
                break
    return data


def _steps(data: bytes, *, one_size: bool) -> Iterator[bytes]:
    """Yield smaller bytes, those that save most first."""
    if not one_size:
        for at in range(len(data) - 1, -1, -1):
            if len(data) > 1:
                yield data[:at] + data[at + 1 :]
    for at in range(len(data) - 1, -1, -1):
        if data[at]:
            yield data[:at] + b"\0" + data[at + 1 :]
    for at in range(len(data) - 1, -1, -1):
        for bit in range(7, -1, -1):
            less = data[at] & ~(1 << bit)
            if less not in {data[at], 0}:
                yield data[:at] + bytes((less,)) + data[at + 1 :]
