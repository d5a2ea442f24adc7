"""The extensions that an emulated CPU lacks, known by their instructions.

`emu/isa/<isa>/extensions.py` gives the table of one ISA, which is `Isa.lacks`.  Only an instruction
that the CPU has refused is looked up there, so an encoding may be wider than its extension.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple


class Extension(NamedTuple):
    """Some instructions of one extension: a word under a mask, or a pattern of bytes."""

    name: str
    mask: int = 0
    value: int = 0
    pattern: re.Pattern[bytes] | None = None
    """On ISAs whose instructions are not words."""

    def has(self, code: bytes) -> bool:
        """Return whether the instruction that starts these bytes is one of them."""
        if self.pattern is not None:
            return self.pattern.match(code) is not None
        return int.from_bytes(code[:4], "little") & self.mask == self.value


def needed(lacks: Iterable[Extension], code: bytes) -> str:
    """Return the extension that the instruction at the start of code belongs to; "": unknown."""
    return next((one.name for one in lacks if one.has(code)), "")
