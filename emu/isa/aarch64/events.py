"""The events of A64's instructions, by their names (Arm ARM, C4.1)."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from emu.isa.disassembly import decoder
from emu.isa.events import Events
from emu.support.capstone_numbers import CS_ARCH_ARM64, CS_MODE_ARM

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
