"""Emulated instructions of RISC-V: reads of cycle, time and instret, and c.addi4spn of nothing.

Unicorn answers two of them with the host's clock, and refuses time, which it leaves to firmware.
It refuses c.addi4spn with an immediate of 0, as the CPU does (0 itself is c.unimp); but it makes a
block of no bytes of it.  The last byte of such a block is the one before it, and if that is in a
page that is not mapped, the block is a page fault.

    31          20 19   15 14  12 11   7 6      0
      |    csr    |  rs1  |funct3|  rd  | 1110011 |    csrrs, csrrc, csrrsi, csrrci with rs1 0: a read

    15    13 12                    5  4      2 1      0
      |  000   |        00000000       |   rd   |   00   |    c.addi4spn, reserved

Source: RISC-V unprivileged specification, chapters 7 (Zicntr), 6 (Zicsr) and 26 (C).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.isa.riscv64.registers import GENERAL
from emu.isa.unicorn_model import EmulatedInstructions, InterruptedCpu, ModelledCpu, Raise, ServingCpu

# Opcode, rs1, and the bit of funct3 that says "set or clear": bit 13.
READ_MASK: Final = 0x000F_A07F
READ: Final = 0x0000_2073
# The bits of c.addi4spn that are not its register: with an immediate of 0, all are 0.
_REFUSED_MASK: Final = 0xFFE3
_COMPRESSED: Final = 3
# RISCV_EXCP_ILLEGAL_INST
_ILLEGAL: Final = 2
CYCLE, TIME, INSTRET = 0xC00, 0xC01, 0xC02
# Nanoseconds of a tick: of a timer of 10 MHz, as in QEMU's machines, and of a CPU of 100 MHz.
_TICKS: Final = {CYCLE: 10, TIME: 100, INSTRET: 10}


def _found(_cpu: ModelledCpu, fetch: Callable[[int], int], address: int) -> bool:
    low = fetch(address)
    if low & _COMPRESSED != _COMPRESSED:
        return False
    word = low | fetch(address + 2) << 16
    return word & READ_MASK == READ and word >> 20 in _TICKS


def _empty(fetch: Callable[[int], int], address: int) -> bool:
    return not fetch(address) & _REFUSED_MASK


def _refuse(cpu: InterruptedCpu) -> int:
    cpu.exception.value = _ILLEGAL
    return cpu.ask(_ILLEGAL)


def _serve(cpu: ServingCpu, code: bytes) -> int | Raise:
    word = int.from_bytes(code[:4], "little")
    if not word & _REFUSED_MASK:
        return _refuse
    number = word >> 7 & 0x1F
    if number:
        cpu.write_register(GENERAL[number], cpu.time() // _TICKS[word >> 20])
    return 4


EMULATED: Final = EmulatedInstructions(found=_found, fetch_unit=2, serve=_serve, empty=_empty)
