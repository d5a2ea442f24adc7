"""The rules of RISC-V for fetches of code that another hart writes.

`fence.i` makes stores visible to the fetches of its own hart, and of no other; neither an interrupt
nor the return from it does.  An aligned word is fetched whole where the extension Ziccif is, which
the profiles from RVA20 on require; an instruction of four bytes that is not aligned is two fetches.
"""

from __future__ import annotations

from typing import Final

from emu.isa.fetch import Barrier, Effect, Fetching

# Bits of a fence: it waits for stores, and stores (or output, such as a call of other harts) wait for it.
_WRITES_BEFORE: Final = 1 << 24
_AFTER: Final = 0b0101 << 20


def barrier(code: bytes) -> Barrier:
    """Return the effects of the instruction that begins these bytes."""
    word = int.from_bytes(code[:4], "little")
    match word & 0x7F, word >> 12 & 7:
        case (0x0F, 0) if word & _WRITES_BEFORE and word & _AFTER:
            return Barrier(Effect.ORDER | Effect.COMPLETE)
        case (0x0F, 1):
            return Barrier(Effect.SYNCHRONIZE)
        case _:
            return Barrier(Effect.NONE)


FETCHING: Final = Fetching(
    unit=4,
    block=1,
    ordered=False,
    broadcast=False,
    interrupted=False,
    barrier=barrier,
    sources=(
        "RISC-V unprivileged specification, Zifencei, and RVWMO (misaligned accesses)",
        "RISC-V profiles, RVA20 (Ziccif); https://github.com/riscv/riscv-profiles/issues/190",
        "https://github.com/riscv/riscv-isa-manual/issues/650",
    ),
)
