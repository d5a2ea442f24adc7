"""Machine words of 64 bits: the one arithmetic that everything here shares.

It stands apart from `emu.isa` because the tables of the ISAs are themselves made of things that
need it.
"""

from __future__ import annotations

from typing import Final

# All the bits of a word: what arithmetic on Python's unbounded integers is cut to.
WORD_MASK: Final = 0xFFFF_FFFF_FFFF_FFFF
