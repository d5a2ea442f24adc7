"""Functions and numbers of Unicorn's library, for machine code outside the engine."""

from __future__ import annotations

from typing import Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.support.function_address import function_address

# The kind of a read; those of a write and of a fetch follow (enum uc_mem_type of unicorn.h).
READ: Final[int] = unicorn.UC_MEM_READ
# The hook that fills the TLB (enum uc_hook_type of unicorn.h).
TLB_FILL: Final[int] = unicorn.UC_HOOK_TLB_FILL


def address(name: str) -> int:
    """Return the address of a function that the library exports.  Raises AttributeError."""
    return function_address(getattr(uclib, name))
