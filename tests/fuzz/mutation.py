"""Ways to damage bytes and text."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

# Numbers at which code goes wrong.
NUMBERS = (0, 1, 2, 7, 8, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF,
           (1 << 63) - 1, 1 << 63, (1 << 64) - 1, (1 << 64) - 8, 1 << 40)  # fmt: skip


def damage(random: Random, data: bytes, most: int = 8, among: Sequence[int] = ()) -> bytes:
    """Change some bytes of `data`, mostly at the offsets `among` if there are any; now and then its length."""
    damaged = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 3, most))):
        if not damaged:
            break
        at = random.choice(among) if among and random.random() < 0.8 else random.randrange(len(damaged))
        at = min(at, len(damaged) - 1)
        match random.randrange(8):
            case 0 | 1:
                damaged[at] = random.randrange(256)
            case 2:
                damaged[at] ^= 1 << random.randrange(8)
            case 3 | 4 | 5:
                size = random.choice((2, 4, 8))
                number = random.choice(NUMBERS) & (1 << 8 * size) - 1
                damaged[at : at + size] = number.to_bytes(size, "little")[: len(damaged) - at]
            case 6:
                del damaged[random.randrange(len(damaged)) :]
            case _:
                other = random.randrange(len(damaged))
                size = random.choice((4, 8, 16, 40))
                damaged[at : at + size] = damaged[other : other + size][: len(damaged) - at]
    return bytes(damaged)


def damage_words(random: Random, words: Sequence[str], vocabulary: Sequence[str], most: int = 6) -> list[str]:
    """Drop, repeat, exchange, replace and insert words."""
    damaged = list(words)
    for _ in range(random.choice((0, 1, 1, 2, 3, most))):
        at = random.randrange(len(damaged) + 1)
        match random.randrange(6):
            case 0:
                del damaged[at : at + random.randint(1, 3)]
            case 1:
                damaged[at:at] = damaged[at : at + random.randint(1, 5)] * random.choice((1, 2, 40))
            case 2:
                other = random.randrange(len(damaged) + 1)
                damaged[at : at + 1], damaged[other : other + 1] = damaged[other : other + 1], damaged[at : at + 1]
            case 3:
                damaged[at : at + 1] = [random.choice(vocabulary)]
            case _:
                damaged.insert(at, random.choice(vocabulary))
    return damaged
