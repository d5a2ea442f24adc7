"""The flags of x86 that instructions compute (Intel SDM volume 1, 3.4.3)."""

from __future__ import annotations

from typing import Final

# Bit 1 is always set.
_ALWAYS: Final = 0x2
# Combinations of CF PF AF ZF SF OF DF.
_COMBINATIONS: Final = (0, 0x1, 0x40, 0x41, 0x80, 0x800, 0x880, 0x8D5, 0x4, 0x10, 0x400, 0x4C1)

STATES: Final = tuple(_ALWAYS | bits for bits in _COMBINATIONS)
# CF PF AF ZF SF DF OF: not TF, IF and the system flags.
SETTABLE: Final = 0xCD5
