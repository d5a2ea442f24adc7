"""The rules of AArch64 for fetches of code that another CPU writes.

A word is fetched whole.  `dc cvau`, `ic ivau` and `dsb` reach the caches of all CPUs; what a CPU
has fetched before, it discards at a context synchronization event: an `isb`, the entry to an
exception, the return from one.  Until then the execution of a word that changes is constrained
unpredictable, unless both the old word and the new one are of the kinds listed here.
"""

from __future__ import annotations

from typing import Final

from emu.isa.fetch import Barrier, Effect, Fetching

# (mask, value): B, BL; BRK, SVC, HVC, SMC; ISB; NOP.
_CONCURRENT: Final = (
    (0x7C00_0000, 0x1400_0000),
    (0xFFE0_001F, 0xD420_0000),
    (0xFFE0_001F, 0xD400_0001),
    (0xFFE0_001F, 0xD400_0002),
    (0xFFE0_001F, 0xD400_0003),
    (0xFFFF_F0FF, 0xD503_30DF),
    (0xFFFF_FFFF, 0xD503_201F),
)


def concurrent(code: bytes) -> bool:
    """Return whether the word may be modified while another CPU executes it."""
    word = int.from_bytes(code[:4], "little")
    return any(word & mask == value for mask, value in _CONCURRENT)


# (mask, value, effect, whether Xt has an address).
_BARRIERS: Final = (
    (0xFFFF_F0FF, 0xD503_309F, Effect.ORDER | Effect.COMPLETE, False),  # dsb
    (0xFFFF_F0FF, 0xD503_30BF, Effect.ORDER, False),  # dmb
    (0xFFFF_F0FF, 0xD503_30DF, Effect.SYNCHRONIZE, False),  # isb
    (0xFFFF_FFFF, 0xD69F_03E0, Effect.SYNCHRONIZE, False),  # eret
    (0xFFFF_FFE0, 0xD50B_7A20, Effect.CLEAN, True),  # dc cvac
    (0xFFFF_FFE0, 0xD50B_7B20, Effect.CLEAN, True),  # dc cvau
    (0xFFFF_FFE0, 0xD50B_7E20, Effect.CLEAN, True),  # dc civac
    (0xFFFF_FFE0, 0xD50B_7520, Effect.INVALIDATE, True),  # ic ivau
    (0xFFFF_FFFF, 0xD508_711F, Effect.INVALIDATE, False),  # ic ialluis; ic iallu reaches one CPU
)


def barrier(code: bytes) -> Barrier:
    """Return the effects of the instruction that begins these bytes."""
    word = int.from_bytes(code[:4], "little")
    for mask, value, effect, addressed in _BARRIERS:
        if word & mask == value:
            return Barrier(effect, f"x{word & 31}" if addressed else "")
    return Barrier(Effect.NONE)


FETCHING: Final = Fetching(
    unit=4,
    block=1,
    ordered=False,
    broadcast=True,
    interrupted=True,
    concurrent=concurrent,
    barrier=barrier,
    sources=(
        "Arm ARM (DDI 0487), part B2: Concurrent modification and execution of instructions",
        "Arm ARM (DDI 0487), part B2: Synchronization and coherency issues between data and instruction accesses",
        "Arm ARM (DDI 0487), part C6 and C5: DMB, DSB, ISB, ERET, DC, IC",
        "Simner and others, ARMv8-A System Semantics: Instruction Fetch in Relaxed Architectures (ESOP 2020)",
    ),
)
