"""The experiments that find the state of Unicorn's RISC-V CPU (`emu.unicorn_layout`)."""

from __future__ import annotations

from typing import Final

import unicorn
from unicorn import riscv_const as uc

from emu.unicorn_layout.bench import Bench, NotFoundError, RegisterRun, Subject, agreed, only, places
from emu.unicorn_layout.bench import words_of_code as _code

_INT: Final = 4
_WORD: Final = 8
_MAGIC: Final = (0x5A5A_1234_5678_9AB0, 0x1B1B_0123_4567_8AB0)
_GENERAL: Final = tuple(uc.UC_RISCV_REG_X0 + number for number in range(32))
# Instructions: ecall, wfi, nop, ebreak, lr.d a1,(a0), sc.d a1,a1,(a0).
_ECALL, _WFI, _NOP, _EBREAK, _LR, _SC = 0x73, 0x1050_0073, 0x13, 0x10_0073, 0x1005_35AF, 0x18B5_35AF
# The machine's interrupts of software and timer, and the supervisor's timer; none is enabled in mstatus.
_INTERRUPTS: Final = (1 << 5 | 1 << 1, 1 << 9 | 1 << 5)
_HARD: Final = 2
# Instructions of two blocks, and the bytes of the context for translation that may have its counts.
_LENGTHS: Final = (20, 40)
_COUNTS: Final = 0x80
# Fields of mstatus: a bit of FS, and MIE.
_STATUS: Final = (1 << 13, 1 << 3)
# satp: sv39, and the number of a page.
_TABLES: Final = (8 << 60 | 0x12345, 8 << 60 | 0x54321)


def _experiments(bench: Bench) -> dict[str, int]:
    return {
        "RESERVATION": bench.reservation(uc.UC_RISCV_REG_A0, _code(_LR), _code(_SC)),
        "INVALID_ERROR": _error(bench),
        "MIE": bench.found("mie", uc.UC_RISCV_REG_MIE, _INTERRUPTS),
        "MIP": _pending(bench),
        "MSTATUS": _status(bench),
        "TCG_OPS": _operations(bench),
        "SATP": bench.found("satp", uc.UC_RISCV_REG_SATP, _TABLES),
    }


def _error(bench: Bench) -> int:
    """Find the error that ebreak leaves: it ends the run, unless it is cleared in the hook."""
    candidates = places(bench.engine_bytes(), unicorn.UC_ERR_OK, _INT)
    candidates &= places(bench.trapped(_code(_EBREAK)).engine, unicorn.UC_ERR_EXCEPTION, _INT)
    offset = only("the error that ends the run", candidates)
    length = len(_code(_EBREAK))

    def serve(_number: int) -> None:
        bench.write(bench.handle + offset, 0, _INT)
        bench.uc.reg_write(uc.UC_RISCV_REG_PC, int(bench.uc.reg_read(uc.UC_RISCV_REG_PC)) + length)

    bench.on_trap = serve
    bench.run(_code(_EBREAK, _WFI))
    bench.on_trap = None
    if bench.error:
        raise NotFoundError("the error that ends the run: clearing it has no effect")
    return offset


def _pending(bench: Bench) -> int:
    """Find the pending interrupts, and what QEMU notes of them for its next block (of any CPU)."""
    bench.uc.reg_write(uc.UC_RISCV_REG_MIP, 0)
    requests = places(bench.cpu_bytes(), 0, _INT)
    offset = bench.found("mip", uc.UC_RISCV_REG_MIP, _INTERRUPTS, _INT)
    requests &= places(bench.cpu_bytes(), _HARD, _INT)
    bench.uc.reg_write(uc.UC_RISCV_REG_MIP, 0)
    requests &= places(bench.cpu_bytes(), 0, _INT)
    bench.facts["CPU_INTERRUPTS"] = only("the request of an interrupt", requests)
    return offset


def _operations(bench: Bench) -> int:
    """Find the count of a block's operations, by blocks of two lengths: a nop is one."""
    context = bench.reader.word(bench.handle + bench.facts["UC_TCG"]) or 0
    counts = []
    for number in _LENGTHS:
        bench.run(_code(*[_NOP] * number, _WFI))
        counts.append(list(memoryview(bench.reader.read(context, _COUNTS)).cast("i")))
    grown = [after - before for before, after in zip(*counts, strict=True)]
    length = _LENGTHS[1] - _LENGTHS[0]
    return _INT * only("operations", (at for at, more in enumerate(grown) if more == length))


def _blocks(bench: Bench) -> dict[str, int]:
    """Find mstatus, and the error that ends a run, of any CPU."""
    return {"RISCV_MSTATUS": _status(bench), "UC_INVALID_ERROR": _error(bench)}


def _status(bench: Bench) -> int:
    """Find mstatus by two of its bits."""

    def fits(bit: int) -> set[int]:
        before, after = (_with_status(bench, value) for value in (0, bit))
        return {at for at in range(0, len(before) - _WORD, _WORD) if _word(before, at) ^ _word(after, at) == bit}

    return agreed("mstatus", map(fits, _STATUS))


def _with_status(bench: Bench, value: int) -> bytes:
    bench.uc.reg_write(uc.UC_RISCV_REG_MSTATUS, value)
    return bench.env_bytes()


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _WORD], "little")


RISCV64: Final = Subject(
    name="riscv64",
    architecture=unicorn.UC_ARCH_RISCV,
    mode=unicorn.UC_MODE_RISCV64,
    target="riscv64",
    # x0 is always 0, so the others are searched.
    runs=(
        RegisterRun("GPR", _GENERAL[1:], _MAGIC, before=_WORD),
        RegisterRun("FPR", tuple(uc.UC_RISCV_REG_F0 + number for number in range(32)), _MAGIC),
        RegisterRun("PC", (uc.UC_RISCV_REG_PC,), (0x0012_3456_7890, 0x0034_5678_9ABC)),
    ),
    traps=((_code(_ECALL), 8), (bytes(_INT), 2)),
    wait=_code(_WFI),
    nop=_code(_NOP),
    functions=("riscv_cpu_do_interrupt_riscv64",),
    experiments=_experiments,
    blocks=_blocks,
    block_functions=("riscv_cpu_fp_enabled_riscv64", "riscv_cpu_mmu_index_riscv64"),
)
