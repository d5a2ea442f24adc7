"""fmv.w.x and the sign injections of singles, which QEMU 5 does not box.

QEMU translates them without a function that could be replaced, as it does the other operations on
singles (`emu.isa.riscv64.helpers`).  A hook before each executes it.  While the floating-point
registers are not marked as changed (mstatus.FS), QEMU executes it, which marks them.

    31      27 26 25 24 20 19 15 14 12 11 7 6     0
      00100      00   rs2   rs1    rm   rd  1010011    fsgnj.s, fsgnjn.s, fsgnjx.s: rm 0, 1, 2
      11110      00     0   rs1     0   rd  1010011    fmv.w.x
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.isa.riscv64.helpers import BOX, CANONICAL_NAN
from emu.isa.riscv64.registers import GENERAL
from emu.isa.unicorn_model import Corrections, ServingCpu

SIGN_INJECTION_MASK, SIGN_INJECTION = 0xFE00_007F, 0x2000_0053
MOVE_MASK, MOVE = 0xFFF0_707F, 0xF000_0053
_OPCODE, _OPCODE_MASK = 0x53, 0x7F
_SIGN: Final = 1 << 31
_HALF: Final = 0xFFFF_FFFF
_NEGATED, _MULTIPLIED = 1, 2
DIRTY: Final = 3 << 13


def _found(fetch: Callable[[int], int], address: int) -> bool:
    if fetch(address) & _OPCODE_MASK != _OPCODE:
        return False
    word = sum(fetch(address + index) << 8 * index for index in range(4))
    if word & MOVE_MASK == MOVE:
        return True
    return word & SIGN_INJECTION_MASK == SIGN_INJECTION and word >> 12 & 7 <= _MULTIPLIED


def _execute(cpu: ServingCpu, code: bytes, _place: int | None) -> bool:
    word = int.from_bytes(code[:4], "little")
    if cpu.read_public("mstatus") & DIRTY != DIRTY:
        return False
    target, first, second = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    if word & MOVE_MASK == MOVE:
        value = cpu.read_register(GENERAL[first])
    else:
        number, sign = (_unboxed(cpu.read_public(f"f{register}")) for register in (first, second))
        kind = word >> 12 & 7
        sign ^= _SIGN if kind == _NEGATED else number if kind == _MULTIPLIED else 0
        value = number & ~_SIGN | sign & _SIGN
    cpu.write_public(f"f{target}", BOX | value & _HALF)
    return True


def _unboxed(value: int) -> int:
    return value & _HALF if value >= BOX else CANONICAL_NAN


UNBOXED: Final = Corrections(_found, lambda _env, _fetch, _address: True, _execute, inline=True)
