"""Encodings for a fuzzer of decoders: real instructions with changes, and random bytes.

The seed is fixed, so the same pieces give the same encodings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from emu.isa import Isa
from providers import fasttrap

_SEED: Final = 20
# One encoding of so many is random bytes.
_RANDOM: Final = 4


def made_encodings(isa: Isa, pieces: Sequence[bytes], count: int) -> Iterator[bytes]:
    """Yield so many encodings; `pieces` are the instructions that are changed."""
    random = Random(_SEED)  # noqa: S311  encodings, not secrets
    longest = fasttrap.PORTS[isa.name].longest
    for _ in range(count):
        piece = random.choice(pieces) if pieces and random.randrange(_RANDOM) else random.randbytes(longest)
        data = _changed(random, piece, longest, one_size=isa.instruction_alignment > 1)
        yield data[: isa.instruction_length(data) or len(data)]


def _changed(random: Random, piece: bytes, longest: int, *, one_size: bool) -> bytes:
    """Return an instruction with one to three changes.

    A bit is another one; and if instructions have many sizes, a byte is inserted or removed.
    """
    data = bytearray(piece)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(data))
        change = 0 if one_size else random.randrange(4)
        if change == 1:
            data.insert(place, random.randrange(256))
        elif change == 2 and len(data) > 1:
            del data[place]
        elif change:
            data[place] = random.randrange(256)
        else:
            data[place] ^= 1 << random.randrange(8)
    return bytes(data[:longest]) if one_size else bytes(data + random.randbytes(longest))[:longest]
