"""The rules of x86 for fetches of code that another CPU writes.

Caches are coherent, but a CPU may have fetched and decoded the old bytes before.  Only a
serializing instruction discards them; `iret`, with which an interrupt ends, is one.  The manual
promises nothing about the bytes of an instruction that is written at the same time, except (by
what Linux relies on since 2013) that a single byte is seen old or new.
"""

from __future__ import annotations

from typing import Final

from emu.isa.fetching import Fetching

FETCHING: Final = Fetching(
    unit=1,
    block=8,
    ordered=True,
    broadcast=True,
    interrupted=True,
    sources=(
        "Intel SDM volume 3, Multiple-Processor Management: Handling Self- and Cross-Modifying Code",
        "Intel SDM volume 3, Multiple-Processor Management: Guaranteed Atomic Operations; Serializing Instructions",
        "AMD64 APM volume 2, Memory System: Cross-Modifying Code; Access Atomicity",
        "Linux arch/x86/kernel/alternative.c (text_poke_bp)",
    ),
)
