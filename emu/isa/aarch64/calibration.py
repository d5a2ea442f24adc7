"""The experiments that find the state of Unicorn's AArch64 CPU (`emu.unicorn_layout`)."""

from __future__ import annotations

import ctypes
from typing import Final

import unicorn
from unicorn import arm64_const as uc

from emu.isa.aarch64.offsets import PART
from emu.isa.aarch64.registers import REGISTERS
from emu.isa.aarch64.system_calibration import system_registers
from emu.unicorn_layout.bench import Bench, RegisterRun, Subject, agreed, only, places
from emu.unicorn_layout.bench import words_of_code as _code

_INT: Final = 4
_MAGIC: Final = (0x5A5A_1234_5678_9AB0, 0x1B1B_0123_4567_8AB0)
_DELIVER: Final = "arm_cpu_do_interrupt_aarch64"
_EXCEPTION_IRQ: Final = 5
# Where the vectors of EL1 and of EL2 are; a table has 2 KiB (Arm ARM, D1.4.1).
_VECTORS: Final = {1: 0x0012_0000, 2: 0x0034_0000}
_VECTORS_SIZE: Final = 0x800
# VBAR_EL1, VBAR_EL2, SCR_EL3 and HCR_EL2 as (crn, crm, op0, op1, op2).
_VBAR_EL1, _VBAR_EL2 = (12, 0, 3, 0, 0), (12, 0, 3, 4, 0)
_SCR_EL3, _HCR_EL2 = (1, 1, 3, 6, 0), (1, 1, 3, 4, 0)
# Instructions: brk #5, svc #0, wfi, nop, msr SPSel #0 and #1, ldxr x1,[x0], clrex.
_BRK, _SVC, _WFI, _NOP = 0xD420_00A0, 0xD400_0001, 0xD503_207F, 0xD503_201F
_STACK: Final = (0xD500_40BF, 0xD500_41BF)
_LDXR, _CLREX = 0xC85F_7C01, 0xD503_3F5F
# PSTATE.M: EL1, and which stack pointer.
_MODES: Final = (0b0100, 0b0101)
# Words of the registers in which the target of an exception is searched: those behind its syndrome.
_BEHIND: Final = 0x40
# A syndrome: class BRK in AArch64, four bytes, and the number in the instruction.
_SYNDROME: Final = 0x3C << 26 | 1 << 25


def _prepare(machine: unicorn.Uc) -> None:
    """Make EL1 and EL2 AArch64, as `emu.isa.aarch64.unicorn` does."""
    machine.reg_write(uc.UC_ARM64_REG_CP_REG, (*_SCR_EL3, 1 << 10 | 1))
    machine.reg_write(uc.UC_ARM64_REG_CP_REG, (*_HCR_EL2, 1 << 31))


def _experiments(bench: Bench) -> dict[str, int]:
    return {
        "TTBR0": bench.found("ttbr0_el1", uc.UC_ARM64_REG_TTBR0_EL1, (0x0012_3456_7000, 0x0045_6789_A000)),
        "TTBR1": bench.found("ttbr1_el1", uc.UC_ARM64_REG_TTBR1_EL1, (0x0022_3456_7000, 0x0055_6789_A000)),
        "PSTATE": _pstate(bench),
        "EXCLUSIVE_ADDRESS": bench.reservation(uc.UC_ARM64_REG_X0, _code(_LDXR), _code(_CLREX)),
        **system_registers(bench),
        # It ends in EL2, so it is the last.
        "TARGET_EL": _target(bench),
    }


def _pstate(bench: Bench) -> int:
    """Find the mode, of which the program changes a bit."""

    def fits(choice: int, mode: int) -> set[int]:
        bench.run(_code(choice, _WFI))
        return places(bench.env_bytes(), mode, _INT)

    return agreed("pstate", map(fits, _STACK, _MODES))


def _target(bench: Bench) -> int:
    """Find the level to which an exception goes: another value sends it to another vector.

    It is behind the syndrome, which names the breakpoint's number.
    """

    def named(number: int) -> set[int]:
        return places(bench.trapped(_code(0xD420_0000 | number << 5)).env, _SYNDROME | number, _INT)

    syndrome = agreed("the syndrome", map(named, (5, 0x40D)))
    env = bench.env_bytes()
    candidates = {at for at in places(env, 1, _INT) if syndrome < at < syndrome + _BEHIND}
    return only("the level of an exception", {at for at in candidates if _chooses_level(bench, at)})


def _chooses_level(bench: Bench, place: int) -> bool:
    """Return whether an interrupt is delivered to the level that is written to a place."""
    deliver = bench.function(_DELIVER)
    bench.uc.reg_write(uc.UC_ARM64_REG_CP_REG, (*_VBAR_EL1, _VECTORS[1]))
    bench.uc.reg_write(uc.UC_ARM64_REG_CP_REG, (*_VBAR_EL2, _VECTORS[2]))
    bench.run(_code(_STACK[1], _WFI))
    # The lower level first: the second exception comes from there.
    for level, vectors in _VECTORS.items():
        bench.write(bench.env + place, level, _INT)
        bench.write(bench.cpu + bench.facts["CPU_EXCEPTION"], _EXCEPTION_IRQ, _INT)
        deliver(ctypes.c_void_p(bench.cpu))
        bench.write(bench.cpu + bench.facts["CPU_EXCEPTION"], -1, _INT)
        if int(bench.uc.reg_read(uc.UC_ARM64_REG_PC)) & -_VECTORS_SIZE != vectors:
            return False
    return True


SUBJECT: Final = Subject(
    name=PART,
    architecture=unicorn.UC_ARCH_ARM64,
    mode=unicorn.UC_MODE_ARM,
    target="aarch64",
    runs=(
        RegisterRun("XREGS", tuple(register.unicorn for register in REGISTERS.registers[:32]), _MAGIC),
        RegisterRun("PC", (uc.UC_ARM64_REG_PC,), (0x0012_3456_7890, 0x0034_5678_9ABC)),
    ),
    traps=((_code(_BRK), 7), (_code(_SVC), 2)),
    wait=_code(_WFI),
    nop=_code(_NOP),
    functions=(_DELIVER, "get_arm_cp_reginfo_aarch64"),
    experiments=_experiments,
    prepare=_prepare,
    block_functions=("cpu_get_tb_cpu_state_aarch64",),
)
