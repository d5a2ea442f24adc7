"""AArch64 as Unicorn models it.

Numbers: qemu/target/arm/cpu.h (EXCP_*) of Unicorn 2.1.4.
"""

from __future__ import annotations

import ctypes
from typing import Final

import unicorn
from unicorn import arm64_const as uc

from emu.isa.aarch64.corrections import ORDERED, ORDERED_ACCESSES, ORDERED_MASK
from emu.isa.aarch64.emulated import EMULATED, MRS_CNTPCT, MRS_CNTVCT, PSTATE
from emu.isa.aarch64.registers import OFFSETS
from emu.isa.unicorn_model import ModelledCpu, UnicornModel, VectorFile, register_ids

_EXCEPTION_SVC: Final = 2
_EXCEPTION_IRQ: Final = 5
_EXCEPTION_BKPT: Final = 7
# Where exceptions go: exception.target_el.
_TARGET_EL: Final = OFFSETS["TARGET_EL"]
_EXCLUSIVE_ADDRESS: Final = OFFSETS["EXCLUSIVE_ADDRESS"]
# System registers as (crn, crm, op0, op1, op2).
_SCR_EL3: Final = (1, 1, 3, 6, 0)
_HCR_EL2: Final = (1, 1, 3, 4, 0)
_SCR_RW_NS: Final = 1 << 10 | 1
_HCR_RW: Final = 1 << 31


_TAG: Final = 0xFF << 56
_KERNEL: Final = 1 << 55


def _untagged(address: int) -> int:
    # Arm ARM D8.8 (address tagging): TBI0 is about addresses whose bit 55 is 0.
    return address if address & _KERNEL else address & ~_TAG


def _prepare(cpu: ModelledCpu) -> None:
    """Do what firmware does before it enters EL1.

    EL2 and EL3 exist in the model but were skipped at reset, and unless RW is set in both, QEMU
    assumes that EL1 is AArch32.
    """
    cpu.write_public("cp_reg", (*_SCR_EL3, _SCR_RW_NS))
    cpu.write_public("cp_reg", (*_HCR_EL2, _HCR_RW))


def _interrupt(cpu: ModelledCpu) -> None:
    """Deliver an IRQ to EL1."""
    ctypes.c_uint32.from_address(cpu.env + _TARGET_EL).value = 1
    cpu.exception.value = _EXCEPTION_IRQ
    cpu.deliver()
    cpu.exception.value = -1


_IDS: Final = register_ids(uc, "UC_ARM64_REG_", ttbr0="ttbr0_el1", ttbr1="ttbr1_el1", esr="esr_el1", far="far_el1")

UNICORN = UnicornModel(
    architecture=unicorn.UC_ARCH_ARM64,
    mode=unicorn.UC_MODE_ARM,
    target="aarch64",
    deliver="arm_cpu_do_interrupt_aarch64",
    ids=_IDS,
    check_register="x0",
    check_offset=OFFSETS["XREGS"],
    interrupt=_interrupt,
    emulated=EMULATED,
    corrections=ORDERED_ACCESSES,
    vectors=(VectorFile(_IDS["q0"], _IDS["q31"], 16),),
    breakpoint=_EXCEPTION_BKPT,
    system_call=_EXCEPTION_SVC,
    # Otherwise it is 1 KiB: each page has four misses, and only the first quarter of a changed page is forgotten.
    page_size=4096,
    untagged=_untagged,
    prepare=_prepare,
    reservation=_EXCLUSIVE_ADDRESS,
    # As signed words: LLVM's i32.
    names={
        "MRS_CNTVCT": MRS_CNTVCT - (1 << 32),
        "MRS_CNTPCT": MRS_CNTPCT - (1 << 32),
        "ARM64_PSTATE": PSTATE,
        "ORDERED_MASK": ORDERED_MASK,
        "ORDERED": ORDERED,
        "XREGS": OFFSETS["XREGS"],
    },
    ir=(__package__,),
)
