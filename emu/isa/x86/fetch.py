"""The rules of x86 for fetches of code that another CPU writes.

Caches are coherent, but a CPU may have fetched and decoded the old bytes before.  Only a
serializing instruction discards them; `iret`, with which an interrupt ends, is one.  The manual
promises nothing about the bytes of an instruction that is written at the same time, except (by
what Linux relies on since 2013) that a single byte is seen old or new.
"""

from __future__ import annotations

from typing import Final

from emu.isa.fetch import Barrier, Effect, Fetching

_ALL: Final = Effect.ORDER | Effect.COMPLETE | Effect.SYNCHRONIZE
_STORES: Final = Effect.ORDER | Effect.COMPLETE
# First bytes without prefixes -> effect.
_BARRIERS: Final = {
    "0fa2": _ALL,  # cpuid
    "0f01e8": _ALL,  # serialize
    "cf": _ALL,  # iret
    "0f22": _ALL,  # mov to a control register
    "0f23": _ALL,  # mov to a debug register
    "0f09": _ALL,  # wbinvd
    "0f08": _ALL,  # invd
    "0faef0": _STORES,  # mfence
    "0faef8": _STORES,  # sfence
}
_XCHG: Final = frozenset({0x86, 0x87})
# From this second byte on, xchg exchanges two registers, and is no barrier.
_REGISTER_FORM: Final = 0xC0
_LOCK: Final = 0xF0
_PREFIXES: Final = frozenset({0x2E, 0x36, 0x3E, 0x26, 0x64, 0x65, 0x66, 0x67, 0xF2, 0xF3, *range(0x48, 0x50)})


def barrier(code: bytes) -> Barrier:
    """Return the effects of the instruction that begins these bytes."""
    if code[:1] == bytes([_LOCK]):
        return Barrier(_STORES)
    while code and code[0] in _PREFIXES:
        code = code[1:]
    if len(code) > 1 and code[0] in _XCHG and code[1] < _REGISTER_FORM:
        return Barrier(_STORES)
    digits = code[:3].hex()
    return Barrier(next((effect for start, effect in _BARRIERS.items() if digits.startswith(start)), Effect.NONE))


FETCHING: Final = Fetching(
    unit=1,
    block=8,
    ordered=True,
    broadcast=True,
    interrupted=True,
    coherent=True,
    barrier=barrier,
    sources=(
        "Intel SDM volume 3, Multiple-Processor Management: Handling Self- and Cross-Modifying Code",
        "Intel SDM volume 3, Multiple-Processor Management: Guaranteed Atomic Operations; Serializing Instructions",
        "AMD64 APM volume 2, Memory System: Cross-Modifying Code; Access Atomicity",
        "Linux arch/x86/kernel/alternative.c (text_poke_bp)",
    ),
)
