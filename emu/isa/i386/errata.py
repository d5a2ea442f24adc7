"""Known bugs of CPUs in executing code that was modified."""

from __future__ import annotations

from typing import Final

from emu.isa.fetch import Erratum

ERRATA: Final = {
    "amd-k6": Erratum(
        "what follows a store to code is executed twice if a jump to that code comes soon",
        "AMD-K6, B stepping: 2.6.2, Re-execution of Instructions Due to Self-Modifying Code",
        most=2,
        within=9,
    )
}
