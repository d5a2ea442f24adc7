"""Values that registers hold before a case: addresses of data, small numbers, and the edges of each type."""

from __future__ import annotations

import struct
from random import Random
from typing import Final

from tests.fuzz.judge.case import DATA, DATA_SIZE

_EDGES: Final = tuple(
    value
    for bits in (7, 8, 15, 16, 31, 32, 63, 64)
    for value in ((1 << bits) - 1, 1 << bits, (1 << bits) + 1, -(1 << bits) & ((1 << 64) - 1))
)
_SINGLES: Final = (
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x7F800000,
    0xFF800000, 0x7FC00000, 0xFFC00001, 0x7FA00001, 0x00000001,
    0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x4F000000, 0xCF000001, 0x5F000000, 0x3F000000, 0x40490FDB, 0x4B800001,
)  # fmt: skip
_DOUBLES: Final = (
    0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000,
    0xBFF0000000000000, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0xFFF8000000000001, 0x7FF4000000000001,
    0x0000000000000001, 0x800FFFFFFFFFFFFF, 0x0010000000000000,
    0x7FEFFFFFFFFFFFFF, 0x41E0000000000000, 0xC1E0000000200000,
    0x43E0000000000000, 0x3FE0000000000000, 0x400921FB54442D18,
    0x4330000000000001, 0x47EFFFFFF0000000, 0x36A0000000000000,
)  # fmt: skip


def pointer(random: Random) -> int:
    """Return an address of the data's pages: mostly aligned, now and then at the end of a page or of the data."""
    end = random.choice((0x1000, DATA_SIZE))
    if random.random() < 0.06:
        return DATA + end - random.randrange(1, 33)
    align = random.choice((64, 16, 16, 8, 8, 4, 1))
    return DATA + random.randrange(0x100, DATA_SIZE - 0x200) // align * align


def stack(random: Random) -> int:
    """Return a stack pointer."""
    return DATA + random.randrange(0x800, 0x1800, 16) + (0 if random.random() < 0.8 else 8)


def number(random: Random) -> int:
    """Return a number of 64 bits."""
    match random.randrange(4):
        case 0:
            return random.choice(_EDGES) & ((1 << 64) - 1)
        case 1:
            return random.randrange(-70, 70) & ((1 << 64) - 1)
        case 2:
            return random.getrandbits(random.randrange(1, 65))
        case _:
            return random.getrandbits(64)


def general(random: Random, pointers: float = 0.6) -> int:
    """Return a value of a general register."""
    return pointer(random) if random.random() < pointers else number(random)


def single(random: Random) -> int:
    """Return the bits of a number of single precision."""
    if random.random() < 0.6:
        return random.choice(_SINGLES)
    if random.random() < 0.6:
        return int(struct.unpack("<I", struct.pack("<f", random.uniform(-1e4, 1e4)))[0])
    return random.getrandbits(32)


def double(random: Random) -> int:
    """Return the bits of a number of double precision."""
    if random.random() < 0.6:
        return random.choice(_DOUBLES)
    if random.random() < 0.6:
        return int(struct.unpack("<Q", struct.pack("<d", random.uniform(-1e9, 1e9)))[0])
    return random.getrandbits(64)


def lane(random: Random) -> int:
    """Return 64 bits of a vector register: floating-point numbers of either precision, or integers."""
    match random.randrange(4):
        case 0:
            return single(random) | single(random) << 32
        case 1 | 2:
            return double(random)
        case _:
            return number(random)
