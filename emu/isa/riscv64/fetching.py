"""The rules of RISC-V for fetches of code that another hart writes.

`fence.i` makes stores visible to the fetches of its own hart, and of no other; neither an interrupt
nor the return from it does.  An aligned word is fetched whole where the extension Ziccif is, which
the profiles from RVA20 on require; an instruction of four bytes that is not aligned is two fetches.
"""

from __future__ import annotations

from typing import Final

from emu.isa.fetching import Fetching

FETCHING: Final = Fetching(
    unit=4,
    block=1,
    ordered=False,
    broadcast=False,
    interrupted=False,
    sources=(
        "RISC-V unprivileged specification, Zifencei, and RVWMO (misaligned accesses)",
        "RISC-V profiles, RVA20 (Ziccif); https://github.com/riscv/riscv-profiles/issues/190",
        "https://github.com/riscv/riscv-isa-manual/issues/650",
    ),
)
