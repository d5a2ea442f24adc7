"""The experiments that find the state of Unicorn's AArch64 CPU (`emu.unicorn_layout`).

Its system registers are among them: the machine for Linux kernels replaces the functions of a few
(`emu.guest.linux_kernel`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

import unicorn
from unicorn import arm64_const as uc
from unicorn.unicorn_py3.unicorn import uclib

from emu.support.plain import function_address
from emu.unicorn_layout.bench import Bench, NotFoundError, RegisterRun, Subject, agreed, only, places
from emu.unicorn_layout.bench import words_of_code as _code

_INT: Final = 4
_WORD: Final = 8
_FIND: Final = "get_arm_cp_reginfo_aarch64"
# The keys of CNTVCT_EL0 and CNTV_CVAL_EL0 in the table: op0 3, op1 3, CRn 14 (QEMU target/arm/cpu.h).
_COMMON: Final = 1 << 28 | 0x13 << 16 | 3 << 14 | 3 << 11 | 14 << 7
_COUNTER, _COMPARE = _COMMON | 2, _COMMON | 3 << 3 | 2
_NAMES: Final = {_COUNTER: b"CNTVCT_EL0\0", _COMPARE: b"CNTV_CVAL_EL0\0"}
# mrs x0,cntvct_el0    msr cntv_cval_el0,x0
_READ_COUNTER, _WRITE_COMPARE = 0xD53B_E040, 0xD51B_E340
# The lower half is 0: the function that checks an access allows it by that.
_VALUES: Final = (0x0123_4567_0000_0000, 0x0765_4321_0000_0000)
# Bytes behind the registers, in the CPU's object, that are searched; and those of a register's description.
_SEARCHED: Final = 0x2000
_DESCRIPTION: Final = range(0x20, 0xA0, _WORD)
_NEAR: Final = 1 << 28
# A hash table begins with its size, a prime, a mask, and the number of its entries, twice.
_FEWEST: Final = 100
_READ: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
_WRITE: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)
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


def _system_registers(bench: Bench) -> dict[str, int]:
    """Return the offsets of the table in the CPU, and of two functions in a register's description.

    Raises `NotFoundError`.
    """
    offset = only("the table of system registers", _tables(bench))
    find = bench.function(_FIND)
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint32]
    table = bench.reader.word(bench.cpu + offset)
    found = {}
    for key, name in _NAMES.items():
        found[key] = find(table, key) or 0
        if bench.reader.read(bench.reader.word(found[key]) or 0, len(name)) != name:
            raise NotFoundError("the table of system registers: it lacks the counter")
    return {
        "CP_REGS": offset,
        "CP_READ": only("the function that reads a register", _readers(bench, found[_COUNTER])),
        "CP_WRITE": only("the function that writes a register", _writers(bench, found[_COMPARE])),
    }


def _tables(bench: Bench) -> Iterator[int]:
    """Yield the offsets of pointers to large hash tables."""
    end = bench.env - bench.cpu + bench.env_size
    for offset in range(end, end + _SEARCHED, _WORD):
        table = bench.reader.word(bench.cpu + offset) or 0
        head = bench.reader.read(table, 5 * _INT) if table % _WORD == 0 else b""
        if len(head) == 5 * _INT:
            size, _, mask, entries, used = memoryview(head).cast("i")
            if mask == size - 1 and _FEWEST < entries <= used <= size:
                yield offset


def _readers(bench: Bench, register: int) -> Iterator[int]:
    """Yield the offsets of functions whose result the instruction reads."""
    for offset in _functions(bench, register):
        callback = _READ(lambda _env, _register: _VALUES[bench.round])
        _run(bench, register + offset, callback, _READ_COUNTER)
        if int(bench.uc.reg_read(uc.UC_ARM64_REG_X0)) == _VALUES[bench.round]:
            yield offset
        bench.uc.reg_write(uc.UC_ARM64_REG_X0, 0)


def _writers(bench: Bench, register: int) -> Iterator[int]:
    """Yield the offsets of functions that get the number which the instruction writes."""
    written: list[int] = []

    def note(_env: Any, _register: Any, value: int) -> int:
        written.append(value)
        return 0

    for offset in _functions(bench, register):
        written.clear()
        bench.uc.reg_write(uc.UC_ARM64_REG_X0, _VALUES[bench.round])
        _run(bench, register + offset, _WRITE(note), _WRITE_COMPARE)
        if written == [_VALUES[bench.round]]:
            yield offset


def _functions(bench: Bench, register: int) -> list[int]:
    """Return the offsets in a description where a function of the library is, or may be."""
    near = function_address(uclib.uc_open)
    words = {offset: bench.reader.word(register + offset) for offset in _DESCRIPTION}
    return [offset for offset, word in words.items() if word == 0 or (word and abs(word - near) < _NEAR)]


def _run(bench: Bench, address: int, function: Any, instruction: int) -> None:
    """Run an instruction while a function is at an address."""
    old = bench.reader.word(address) or 0
    bench.write(address, function_address(function))
    bench.run(_code(instruction, _WFI))
    bench.write(address, old)


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
        **_system_registers(bench),
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


def _chooses_level(bench: Bench, offset: int) -> bool:
    """Return whether an interrupt is delivered to the level that is written at an offset."""
    deliver = bench.function(_DELIVER)
    bench.uc.reg_write(uc.UC_ARM64_REG_CP_REG, (*_VBAR_EL1, _VECTORS[1]))
    bench.uc.reg_write(uc.UC_ARM64_REG_CP_REG, (*_VBAR_EL2, _VECTORS[2]))
    bench.run(_code(_STACK[1], _WFI))
    # The lower level first: the second exception comes from there.
    for level, vectors in _VECTORS.items():
        bench.write(bench.env + offset, level, _INT)
        bench.write(bench.cpu + bench.facts["CPU_EXCEPTION"], _EXCEPTION_IRQ, _INT)
        deliver(ctypes.c_void_p(bench.cpu))
        bench.write(bench.cpu + bench.facts["CPU_EXCEPTION"], -1, _INT)
        if int(bench.uc.reg_read(uc.UC_ARM64_REG_PC)) & -_VECTORS_SIZE != vectors:
            return False
    return True


_GENERAL: Final = (
    *(uc.UC_ARM64_REG_X0 + number for number in range(29)),
    uc.UC_ARM64_REG_FP,
    uc.UC_ARM64_REG_LR,
    uc.UC_ARM64_REG_SP,
)
AARCH64: Final = Subject(
    name="arm",
    architecture=unicorn.UC_ARCH_ARM64,
    mode=unicorn.UC_MODE_ARM,
    target="aarch64",
    runs=(
        RegisterRun("XREGS", _GENERAL, _MAGIC),
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
