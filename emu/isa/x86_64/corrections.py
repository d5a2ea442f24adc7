"""cmpxchg of 32 bits, which clears the upper half of rax in QEMU if it succeeds.

A CPU writes eax only if the comparison fails (Intel SDM volume 2, CMPXCHG).  Compilers set eax by
an instruction that clears the upper half, so a program hardly ever sees the difference: before each
such instruction a hook looks at rax, and the host executes it where its upper half is not 0.

    prefixes (67 f2 f3 segments, LOCK, REX without W)  0f b1
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from emu.isa.unicorn_model import Corrections, ServingCpu
from emu.isa.x86.length import PREFIXES
from emu.isa.x86.registers import OFFSETS

_MOST_PREFIXES: Final = 14
_OPERAND_SIZE: Final = 0x66
_REX: Final = range(0x40, 0x50)
_REX_W, _REX_R, _REX_B = 8, 4, 1
_ESCAPE, _CMPXCHG = 0x0F, 0xB1
_REGISTER: Final = 0xC0
_HALF: Final = 0xFFFF_FFFF
_SIZE: Final = 4
_TRAP_FLAG: Final = 0x100
# OF SF ZF AF PF CF, of which a comparison of equal numbers sets ZF and PF.
_FLAGS, _EQUAL = 0x8D5, 0x44


def _opcode(fetch: Callable[[int], int], address: int) -> tuple[int, int] | None:
    """Return the address of the opcode and the REX prefix; None: it is another instruction."""
    at, rex = address, 0
    for _ in range(_MOST_PREFIXES):
        byte = fetch(at)
        if byte == _OPERAND_SIZE or not (byte in PREFIXES or byte in _REX):
            break
        rex = byte if byte in _REX else 0
        at += 1
    if rex & _REX_W or fetch(at) != _ESCAPE or fetch(at + 1) != _CMPXCHG:
        return None
    return at, rex


def _needed(env: int, _fetch: Callable[[int], int], _address: int) -> bool:
    return ctypes.c_uint64.from_address(env + OFFSETS["REGS"]).value > _HALF


def corrections(registers: tuple[str, ...]) -> Corrections:
    """Return them, for the registers by their numbers."""

    def execute(cpu: ServingCpu, code: bytes, place: int | None) -> bool:
        found = _opcode(code.__getitem__, 0)
        assert found is not None
        at, rex = found
        modrm = code[at + 2]
        flags = cpu.read_register("rflags")
        old = cpu.read_register(registers[0]) & _HALF
        new = cpu.read_register(registers[modrm >> 3 & 7 | (rex & _REX_R) << 1]) & _HALF
        target = registers[modrm & 7 | (rex & _REX_B) << 3] if modrm >= _REGISTER else ""
        if target:
            now = cpu.read_register(target) & _HALF
        elif place is None:
            return False
        else:
            now = cpu.load(place, _SIZE)
        if now != old or flags & _TRAP_FLAG:
            return False
        if target:
            cpu.write_register(target, new)
        else:
            assert place is not None
            cpu.store(place, _SIZE, new)
        cpu.write_register("rflags", flags & ~_FLAGS | _EQUAL)
        return True

    return Corrections(lambda fetch, address: _opcode(fetch, address) is not None, _needed, execute)
