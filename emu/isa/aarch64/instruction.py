"""The instructions of AArch64: length, and events by their names (Arm ARM, C4.1)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from emu.isa.base import Events
from emu.isa.disassembly import CS_ARCH_ARM64, CS_MODE_ARM, decoder


def instruction_length(code: bytes) -> int:
    """Return 4, or 0 if there are fewer bytes."""
    return 4 if len(code) >= 4 else 0


_MACHINE: Final = (CS_ARCH_ARM64, CS_MODE_ARM)
# The first pattern that matches a name decides.
_PATTERNS: Final = [
    (re.compile(pattern), events)
    for pattern, events in (
        (
            r"(cas|swp|ld(add|clr|eor|set|[su]max|[su]min)|st(add|clr|eor|set|[su]max|[su]min))",
            Events.LOAD | Events.STORE,
        ),
        (r"ld", Events.LOAD),
        (r"st", Events.STORE),
        (r"(b|bl|br|blr|ret)(\.[a-z]+|[ab]+z?)?$|cbn?z|tbn?z", Events.BRANCH),
    )
]


@lru_cache(1 << 13)
def events(code: bytes) -> Events:
    """Return the events of the instruction that starts these bytes."""
    for _address, _size, name, _operands in decoder(_MACHINE).disasm_lite(code[:4], 0, 1):
        for pattern, found in _PATTERNS:
            if pattern.match(name):
                return found
    return Events(0)
