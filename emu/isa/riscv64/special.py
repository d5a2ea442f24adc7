"""Special instructions of RISC-V: reads of cycle, time and instret.

Unicorn answers two of them with the host's clock, and refuses time, which it leaves to firmware.

    31          20 19   15 14  12 11   7 6      0
      |    csr    |  rs1  |funct3|  rd  | 1110011 |    csrrs, csrrc, csrrsi, csrrci with rs1 0: a read

Source: RISC-V unprivileged specification, chapters 7 (Zicntr) and 6 (Zicsr).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.isa.riscv64.registers import GENERAL
from emu.isa.unicorn_model import ModelledCpu, ServingCpu, SpecialInstructions

# Opcode, rs1, and the bit of funct3 that says "set or clear": bit 13.
READ_MASK: Final = 0x000F_A07F
READ: Final = 0x0000_2073
_COMPRESSED: Final = 3
CYCLE, TIME, INSTRET = 0xC00, 0xC01, 0xC02
# Nanoseconds of a tick: of a timer of 10 MHz, as in QEMU's machines, and of a CPU of 100 MHz.
_TICKS: Final = {CYCLE: 10, TIME: 100, INSTRET: 10}


def _found(_cpu: ModelledCpu, fetch: Callable[[int], int], address: int) -> bool:
    low = fetch(address)
    if low & _COMPRESSED != _COMPRESSED:
        return False
    word = low | fetch(address + 2) << 16
    return word & READ_MASK == READ and word >> 20 in _TICKS


def _serve(cpu: ServingCpu, code: bytes) -> int:
    word = int.from_bytes(code[:4], "little")
    number = word >> 7 & 0x1F
    if number:
        cpu.write_register(GENERAL[number], cpu.time() // _TICKS[word >> 20])
    return 4


SPECIAL: Final = SpecialInstructions(found=_found, fetch_unit=2, serve=_serve)
