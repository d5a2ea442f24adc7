"""The rules of i386 for fetches of code that another CPU writes, and known bugs of CPUs."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from emu.isa.fetch import Erratum
from emu.isa.x86 import fetch as x86

FETCHING: Final = replace(
    x86.FETCHING,
    errata={
        "amd-k6": Erratum(
            "what follows a store to code is executed twice if a jump to that code comes soon",
            "AMD-K6, B stepping: 2.6.2, Re-execution of Instructions Due to Self-Modifying Code",
            most=2,
            within=9,
        )
    },
)
