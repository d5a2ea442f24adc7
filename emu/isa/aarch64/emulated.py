"""Emulated instructions of AArch64.

They are reads of the counter, which Unicorn answers with the host's clock.

    31          20 19 18  16 15  12 11   8 7   5 4   0
      | 1101 0101 0011 | 1 | op1  | CRn  | CRm  | op2 |  Rt  |    mrs Xt, S3_op1_CRn_CRm_op2

Source: Arm ARM, D17.11 (CNTVCT_EL0, CNTPCT_EL0), C6.2 (MRS).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.isa.aarch64.registers import OFFSETS, REGISTERS
from emu.isa.unicorn_model import EmulatedInstructions, ModelledCpu, ServingCpu

MRS_CNTVCT: Final = 0xD53B_E040
MRS_CNTPCT: Final = 0xD53B_E020
# Where PSTATE is, and the exception level in it.
PSTATE: Final = OFFSETS["PSTATE"]
_LEVEL: Final = 0b1100
_RT: Final = 0x1F
_ZERO: Final = 31
_X: Final = tuple(register.name for register in REGISTERS.registers[:31])
# Nanoseconds of a tick: CNTFRQ_EL0 says 62.5 MHz.
_TICK: Final = 16


def _found(cpu: ModelledCpu, fetch: Callable[[int], int], address: int) -> bool:
    word = fetch(address) & ~_RT
    if word != MRS_CNTPCT:
        return word == MRS_CNTVCT
    # Programs may not read the physical counter; the CPU raises the exception.
    return bool(cpu.read_public("pstate") & _LEVEL)


def _serve(cpu: ServingCpu, code: bytes) -> int:
    number = code[0] & _RT
    if number != _ZERO:
        cpu.write_register(_X[number], cpu.time() // _TICK)
    return 4


EMULATED: Final = EmulatedInstructions(found=_found, fetch_unit=4, serve=_serve)
