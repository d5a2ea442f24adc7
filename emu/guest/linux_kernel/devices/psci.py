"""Arm's power state coordination interface 1.0: calls of the firmware by `hvc`.

| function | number | answer |
| --- | --- | --- |
| PSCI_VERSION | 0x84000000 | 1.0 |
| MIGRATE_INFO_TYPE | 0x84000006 | 2: there is nothing to migrate |
| SYSTEM_OFF | 0x84000008 | ends the run |
| SYSTEM_RESET | 0x84000009 | ends the run |
| PSCI_FEATURES | 0x8400000a | 0 for the two above |
| others | | NOT_SUPPORTED |

Source: Arm DEN 0022D, chapter 5.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from emu.support.words import WORD_MASK

VERSION, MIGRATE_INFO_TYPE, SYSTEM_OFF, SYSTEM_RESET, FEATURES = (
    0x8400_0000, 0x8400_0006, 0x8400_0008, 0x8400_0009, 0x8400_000A,
)  # fmt: skip
NOT_SUPPORTED: Final = -1 & WORD_MASK
_NUMBER: Final = 0xFFFF_FFFF
_NO_MIGRATION: Final = 2


@dataclass(slots=True)
class Psci:
    """The firmware; its fields are its effects on the machine."""

    power_off: Callable[[], object]
    reset: Callable[[], object]

    def call(self, function: int, argument: int) -> int:
        """Serve a call: x0 and x1; return x0."""
        function &= _NUMBER
        if function == VERSION:
            return 1 << 16
        if function == MIGRATE_INFO_TYPE:
            return _NO_MIGRATION
        if function == FEATURES:
            return 0 if argument & _NUMBER in {SYSTEM_OFF, SYSTEM_RESET} else NOT_SUPPORTED
        if function == SYSTEM_OFF:
            self.power_off()
            return 0
        if function == SYSTEM_RESET:
            self.reset()
            return 0
        return NOT_SUPPORTED
