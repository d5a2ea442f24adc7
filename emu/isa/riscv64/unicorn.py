"""RISC-V as Unicorn models it.

Numbers: qemu/target/riscv/cpu_bits.h of Unicorn 2.1.4.
"""

from __future__ import annotations

import ctypes
from typing import Final

import unicorn
from unicorn import riscv_const as uc

from emu.isa.riscv64.corrections import DIRTY, MOVE, MOVE_MASK, SIGN_INJECTION, SIGN_INJECTION_MASK, UNBOXED
from emu.isa.riscv64.emulated import CYCLE, EMULATED, INSTRET, READ, READ_MASK, RESERVED, TIME
from emu.isa.riscv64.helpers import CANONICAL_NAN, HELPERS
from emu.isa.riscv64.registers import OFFSETS
from emu.isa.unicorn_model import InterruptedCpu, ModelledCpu, UnicornModel, VectorFile, register_ids

# RISCV_EXCP_U_ECALL
_ECALL: Final = 8
# RISCV_EXCP_INT_FLAG | IRQ_S_SOFT, in 32 bits
_SOFTWARE_INTERRUPT: Final = 1 - (1 << 31)
# The address that lr has reserved (load_res).
_RESERVATION: Final = OFFSETS["RESERVATION"]
# Offset in struct uc_struct of the error that ends the run.
_INVALID_ERROR: Final = OFFSETS["INVALID_ERROR"]


def _interrupt(cpu: ModelledCpu) -> None:
    """Deliver a software interrupt to supervisor mode."""
    cpu.exception.value = _SOFTWARE_INTERRUPT
    cpu.deliver()
    cpu.exception.value = -1


def _invalid(cpu: InterruptedCpu) -> int:
    """Take ebreak: it sets an error that would end the run although the exception was handled."""
    ctypes.c_uint32.from_address(cpu.handle + _INVALID_ERROR).value = 0
    return cpu.breakpoint()


_IDS: Final = register_ids(uc, "UC_RISCV_REG_")

UNICORN = UnicornModel(
    architecture=unicorn.UC_ARCH_RISCV,
    mode=unicorn.UC_MODE_RISCV64,
    target="riscv64",
    deliver="riscv_cpu_do_interrupt_riscv64",
    ids=_IDS,
    check_register="a0",
    check_offset=OFFSETS["GPR"] + 80,
    interrupt=_interrupt,
    emulated=EMULATED,
    vectors=(VectorFile(_IDS["f0"], _IDS["f31"], 8),),
    # Unicorn moves the pc by 4 before every hook, whatever the instruction's length: Unicorn issue 1990.
    pc_ahead=4,
    # The accrued exceptions (fflags) are behind the end of a context (target/riscv/cpu.h, fp_status).
    left_out=("fcsr",),
    system_call=_ECALL,
    reservation=_RESERVATION,
    corrections=UNBOXED,
    helpers=HELPERS,
    operations=OFFSETS["TCG_OPS"],
    names={
        "UC_INVALID_ERROR": _INVALID_ERROR,
        "FLOAT_MOVE_MASK": MOVE_MASK,
        "FLOAT_MOVE": MOVE,
        "FLOAT_SIGN_MASK": SIGN_INJECTION_MASK,
        "FLOAT_SIGN": SIGN_INJECTION,
        "FLOAT_STATUS": OFFSETS["MSTATUS"],
        "FLOAT_DIRTY": DIRTY,
        "FLOAT_REGISTERS": OFFSETS["FPR"],
        "FLOAT_TO_GENERAL": OFFSETS["GPR"] - OFFSETS["FPR"],
        "CANONICAL_NAN": CANONICAL_NAN,
        "CSR_READ_MASK": READ_MASK,
        "CSR_READ": READ,
        "CSR_CYCLE": CYCLE,
        "CSR_TIME": TIME,
        "CSR_INSTRET": INSTRET,
        **{f"RESERVED_MASK_{number}": mask for number, (mask, _) in enumerate(RESERVED)},
        **{f"RESERVED_{number}": value for number, (_, value) in enumerate(RESERVED)},
    },
    ir=(__package__,),
    on_invalid=_invalid,
)
