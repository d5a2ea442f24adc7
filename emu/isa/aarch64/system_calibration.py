"""The experiments that find Unicorn's table of AArch64's system registers.

The machine for Linux kernels replaces the functions of a few of them (`emu.guest.linux_kernel`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, Final

from unicorn import arm64_const as uc
from unicorn.unicorn_py3.unicorn import uclib

from emu.support.function_address import function_address
from emu.unicorn_layout.bench import Bench, NotFoundError, only, words_of_code

_INT: Final = 4
_WORD: Final = 8
_FIND: Final = "get_arm_cp_reginfo_aarch64"
# The keys of CNTVCT_EL0 and CNTV_CVAL_EL0 in the table: op0 3, op1 3, CRn 14 (QEMU target/arm/cpu.h).
_COMMON: Final = 1 << 28 | 0x13 << 16 | 3 << 14 | 3 << 11 | 14 << 7
_COUNTER, _COMPARE = _COMMON | 2, _COMMON | 3 << 3 | 2
_NAMES: Final = {_COUNTER: b"CNTVCT_EL0\0", _COMPARE: b"CNTV_CVAL_EL0\0"}
# mrs x0,cntvct_el0    msr cntv_cval_el0,x0    wfi
_READ_COUNTER, _WRITE_COMPARE, _WFI = 0xD53B_E040, 0xD51B_E340, 0xD503_207F
# The lower half is 0: the function that checks an access allows it by that.
_MAGIC: Final = (0x0123_4567_0000_0000, 0x0765_4321_0000_0000)
# Bytes behind the registers, in the CPU's object, that are searched; and those of a register's description.
_BEHIND: Final = 0x2000
_DESCRIPTION: Final = range(0x20, 0xA0, _WORD)
_NEAR: Final = 1 << 28
# A hash table begins with its size, a prime, a mask, and the number of its entries, twice.
_FEWEST: Final = 100
_READ: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p)
_WRITE: Final = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint64)


def system_registers(bench: Bench) -> dict[str, int]:
    """Return where the table is in the CPU, and two functions in a register's description.

    Raises `NotFoundError`.
    """
    place = only("the table of system registers", _tables(bench))
    find = bench.function(_FIND)
    find.restype, find.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_uint32]
    table = bench.reader.word(bench.cpu + place)
    found = {}
    for key, name in _NAMES.items():
        found[key] = find(table, key) or 0
        if bench.reader.read(bench.reader.word(found[key]) or 0, len(name)) != name:
            raise NotFoundError("the table of system registers: it lacks the counter")
    return {
        "CP_REGS": place,
        "CP_READ": only("the function that reads a register", _readers(bench, found[_COUNTER])),
        "CP_WRITE": only("the function that writes a register", _writers(bench, found[_COMPARE])),
    }


def _tables(bench: Bench) -> Iterator[int]:
    """Yield the places of pointers to large hash tables."""
    end = bench.env - bench.cpu + bench.env_size
    for place in range(end, end + _BEHIND, _WORD):
        table = bench.reader.word(bench.cpu + place) or 0
        head = bench.reader.read(table, 5 * _INT) if table % _WORD == 0 else b""
        if len(head) == 5 * _INT:
            size, _, mask, entries, used = memoryview(head).cast("i")
            if mask == size - 1 and _FEWEST < entries <= used <= size:
                yield place


def _readers(bench: Bench, register: int) -> Iterator[int]:
    """Yield the places of functions whose result the instruction reads."""
    for place in _functions(bench, register):
        callback = _READ(lambda _env, _register: _MAGIC[bench.round])
        _run(bench, register + place, callback, _READ_COUNTER)
        if int(bench.uc.reg_read(uc.UC_ARM64_REG_X0)) == _MAGIC[bench.round]:
            yield place
        bench.uc.reg_write(uc.UC_ARM64_REG_X0, 0)


def _writers(bench: Bench, register: int) -> Iterator[int]:
    """Yield the places of functions that get the number which the instruction writes."""
    written: list[int] = []

    def note(_env: Any, _register: Any, value: int) -> int:
        written.append(value)
        return 0

    for place in _functions(bench, register):
        written.clear()
        bench.uc.reg_write(uc.UC_ARM64_REG_X0, _MAGIC[bench.round])
        _run(bench, register + place, _WRITE(note), _WRITE_COMPARE)
        if written == [_MAGIC[bench.round]]:
            yield place


def _functions(bench: Bench, register: int) -> list[int]:
    """Return the places in a description where a function of the library is, or may be."""
    near = function_address(uclib.uc_open)
    words = {place: bench.reader.word(register + place) for place in _DESCRIPTION}
    return [place for place, word in words.items() if word == 0 or (word and abs(word - near) < _NEAR)]


def _run(bench: Bench, place: int, function: Any, instruction: int) -> None:
    """Run an instruction while a function is at a place."""
    old = bench.reader.word(place) or 0
    bench.write(place, function_address(function))
    bench.run(words_of_code(instruction, _WFI))
    bench.write(place, old)
