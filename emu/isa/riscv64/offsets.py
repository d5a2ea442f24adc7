"""The offsets of Unicorn's RISC-V CPU (`emu.unicorn_layout.layout`).

`KNOWN`: qemu/target/riscv/cpu.h (CPURISCVState) of Unicorn 2.1.4, and include/uc_priv.h for the
engine's own structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from emu.unicorn_layout.layout import part

# The name of this part of the layout.
PART: Final = "riscv64"
KNOWN: Final[Mapping[str, int]] = {
    # x0 to x31
    "GPR": 0x0,
    "PC": 0x200,
    # The address that lr has reserved (load_res); all ones: none.
    "RESERVATION": 0x208,
    "MIP": 0x278,
    "MIE": 0x288,
    "SATP": 0x2A0,
    # In struct uc_struct: the error that ends the run.
    "INVALID_ERROR": 0x590,
}
OFFSETS: Final = part(PART, KNOWN)
