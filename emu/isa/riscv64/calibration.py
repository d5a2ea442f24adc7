"""The experiments that find the state of Unicorn's RISC-V CPU (`emu.wheel`)."""

from __future__ import annotations

from typing import Final

import unicorn
from unicorn import riscv_const as uc

from emu.isa.riscv64.offsets import PART
from emu.isa.riscv64.registers import GENERAL, REGISTERS
from emu.wheel.bench import Bench, NotFoundError, RegisterRun, Subject, only, places
from emu.wheel.bench import words_of_code as _code

_INT: Final = 4
_WORD: Final = 8
_MAGIC: Final = (0x5A5A_1234_5678_9AB0, 0x1B1B_0123_4567_8AB0)
_GENERAL: Final = tuple(REGISTERS.by_name[name].unicorn for name in GENERAL)
# Instructions: ecall, wfi, nop, ebreak, lr.d a1,(a0), sc.d a1,a1,(a0).
_ECALL, _WFI, _NOP, _EBREAK, _LR, _SC = 0x73, 0x1050_0073, 0x13, 0x10_0073, 0x1005_35AF, 0x18B5_35AF
# The machine's interrupts of software and timer, and the supervisor's timer; none is enabled in mstatus.
_INTERRUPTS: Final = (1 << 5 | 1 << 1, 1 << 9 | 1 << 5)
_HARD: Final = 2
# satp: sv39, and the number of a page.
_TABLES: Final = (8 << 60 | 0x12345, 8 << 60 | 0x54321)


def _experiments(bench: Bench) -> dict[str, int]:
    return {
        "RESERVATION": bench.reservation(uc.UC_RISCV_REG_A0, _code(_LR), _code(_SC)),
        "INVALID_ERROR": _error(bench),
        "MIE": bench.found("mie", uc.UC_RISCV_REG_MIE, _INTERRUPTS),
        "MIP": _pending(bench),
        "SATP": bench.found("satp", uc.UC_RISCV_REG_SATP, _TABLES),
    }


def _error(bench: Bench) -> int:
    """Find the error that ebreak leaves: it ends the run, unless it is cleared in the hook."""
    candidates = places(bench.engine_bytes(), unicorn.UC_ERR_OK, _INT)
    candidates &= places(bench.trapped(_code(_EBREAK)).engine, unicorn.UC_ERR_EXCEPTION, _INT)
    place = only("the error that ends the run", candidates)
    length = len(_code(_EBREAK))

    def serve(_number: int) -> None:
        bench.write(bench.handle + place, 0, _INT)
        bench.uc.reg_write(uc.UC_RISCV_REG_PC, int(bench.uc.reg_read(uc.UC_RISCV_REG_PC)) + length)

    bench.on_trap = serve
    bench.run(_code(_EBREAK, _WFI))
    bench.on_trap = None
    if bench.error:
        raise NotFoundError("the error that ends the run: clearing it has no effect")
    return place


def _pending(bench: Bench) -> int:
    """Find the pending interrupts, and what QEMU notes of them for its next block (of any CPU)."""
    bench.uc.reg_write(uc.UC_RISCV_REG_MIP, 0)
    requests = places(bench.cpu_bytes(), 0, _INT)
    place = bench.found("mip", uc.UC_RISCV_REG_MIP, _INTERRUPTS, _INT)
    requests &= places(bench.cpu_bytes(), _HARD, _INT)
    bench.uc.reg_write(uc.UC_RISCV_REG_MIP, 0)
    requests &= places(bench.cpu_bytes(), 0, _INT)
    bench.facts["CPU_INTERRUPTS"] = only("the request of an interrupt", requests)
    return place


SUBJECT: Final = Subject(
    name=PART,
    architecture=unicorn.UC_ARCH_RISCV,
    mode=unicorn.UC_MODE_RISCV64,
    target="riscv64",
    # x0 is always 0, so the others are searched.
    runs=(
        RegisterRun("GPR", _GENERAL[1:], _MAGIC, before=_WORD),
        RegisterRun("PC", (uc.UC_RISCV_REG_PC,), (0x0012_3456_7890, 0x0034_5678_9ABC)),
    ),
    traps=((_code(_ECALL), 8), (bytes(_INT), 2)),
    wait=_code(_WFI),
    nop=_code(_NOP),
    functions=("riscv_cpu_do_interrupt_riscv64",),
    experiments=_experiments,
)
