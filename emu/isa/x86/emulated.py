"""Emulated instructions of x86: time-stamp counter, random numbers, cpuid, x87, refused ones.

Unicorn answers rdtsc with the host's clock and rdrand with the host's random numbers, and cpuid
promises what the guests do not have (`emu.isa.x86.cpuid`).  LOCK before
bt, bts, btr or btc with a register operand makes QEMU 5's translator read a value that it has not
set, and abort the process; a CPU refuses such an instruction (Intel SDM volume 2, LOCK).  Before
most other instructions Unicorn skips the prefix; a kernel's are left to `emu.engine.qemu.ud_hooks`.
Unicorn computes what SSE has of AVX, and takes instructions of other features for older ones.
cpuid promises none of them, so a CPU refuses them.
Unicorn lets a user program reach ports, and takes rdpmc and sysenter for instructions that it may
have: a CPU gives #GP, and #UD as AMD's do with sysenter in long mode (AMD64 manual volume 3).
Remainders and transcendental functions of the x87 are `emu.isa.x86.x87`.
After pause QEMU leaves its loop without the debug exception of the trap flag (target/i386
misc_helper.c, do_pause), so the next instruction would be executed as well.

Found by the pattern below, which reads no byte that the instruction does not have:

    prefixes (66 67 f2 f3 segments, LOCK, REX)  0f  31        rdtsc
                                                0f  01 f9     rdtscp
                                                0f  a2        cpuid
                                                0f  c7 /6 /7  rdrand, rdseed of a register
                                                0f  33        rdpmc, of a user program
                                                0f  34        sysenter, of a user program
                                                0f  78 79     extrq, insertq, of a user program
                                                0f  ae        ModRM f0 to f7 behind 66 f2 f3: tpause
                                      f2 or f3: 0f  2b        movntss, movntsd, of a user program
                                                c4 c5         VEX but for BMI, of a user program
                                                8f c6 c7      XOP, xabort, xbegin, of a user program
                              f3 without REX.B: 90        pause, if it is stepped
                              without LOCK:     d9  f0 to f3 f5 f8 f9 fb fe ff: x87
                                                e4 to e7, ec to ef, 6c to 6f: in, out, ins, outs
                                    with LOCK:  0f  a3 ab b3 bb ba, ModRM from c0 on
                                                whatever cannot be locked, of a user program
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Final, NamedTuple

from emu.isa.unicorn_model import EmulatedInstructions, ModelledCpu, Raise, ServingCpu
from emu.isa.x86 import x87
from emu.isa.x86.cpuid import answer
from emu.isa.x86.instruction import LOCK, lockable
from emu.isa.x86.length import PREFIXES
from emu.isa.x86.unicorn import general_protection, has_x87, in_user_mode, invalid_opcode, is_stepped, single_step

_REX: Final = range(0x40, 0x50)
_MOST_PREFIXES: Final = 14
_ESCAPE: Final = 0x0F
_RDTSC, _RDTSCP, _RDRAND = 0x31, (0x01, 0xF9), 0xC7
_RDPMC, _SYSENTER, _CPUID = 0x33, 0x34, 0xA2
_PAUSE, _X87 = 0x90, 0xD9
_PORTS: Final = frozenset({*range(0xE4, 0xE8), *range(0xEC, 0xF0), *range(0x6C, 0x70)})
_BIT_TESTS: Final = frozenset({0xA3, 0xAB, 0xB3, 0xBB, 0xBA})
# ModRM bytes: mod 3 is a register.
_REGISTER: Final = 0xC0
_RDRAND_REGISTER, _RDSEED_REGISTER = 0xF0, 0xF8
_OPERAND_SIZE, _REPEAT_NOT, _REPEAT, _REX_W, _REX_B = 0x66, 0xF2, 0xF3, 8, 1
# VEX of two and three bytes; of the latter, opcodes by map, behind a second byte and a third.
_VEX_2, _VEX_3 = 0xC5, 0xC4
_BMI: Final = {2: {0xF2, 0xF3, 0xF5, 0xF6, 0xF7}, 3: {0xF0}}
_MAP: Final = 0x1F
# pop and mov, of which only the reg field 0 is used: XOP, xabort and xbegin are others.
_ONE_OF_GROUP: Final = frozenset({0x8F, 0xC6, 0xC7})
_REG: Final = 0x38
_SSE4A: Final = frozenset({0x78, 0x79})
_STREAM, _GROUP_15 = 0x2B, 0xAE
# tpause, umonitor and umwait; without a prefix the same are mfence.
_WAITS: Final = range(0xF0, 0xF8)
_CARRY: Final = 1
# OF SF ZF AF PF CF, which rdrand sets.
_FLAGS: Final = 0x8D5
_HALF: Final = 0xFFFF_FFFF


class _Kind(Enum):
    """The host's implementation of an instruction."""

    COUNTER = auto()
    COUNTER_AND_CPU = auto()
    RANDOM = auto()
    IDENTITY = auto()
    PROTECTED = auto()
    """A user program's gets #GP."""
    UNKNOWN = auto()
    """A user program's gets #UD."""
    LOCKED = auto()
    PAUSE = auto()
    """One that is stepped."""
    X87 = auto()


_USER_ONLY: Final = frozenset({_Kind.PROTECTED, _Kind.UNKNOWN})
_KINDS: Final = {_RDTSC: _Kind.COUNTER, _RDPMC: _Kind.PROTECTED, _SYSENTER: _Kind.UNKNOWN, _CPUID: _Kind.IDENTITY}


class _Found(NamedTuple):
    """A decoded emulated instruction."""

    kind: _Kind
    at: int
    """Address of the opcode, behind the prefixes."""
    prefixes: frozenset[int]
    rex: int
    """The REX prefix; 0: none."""


def _emulated(fetch: Callable[[int], int], address: int, *, long_mode: bool) -> _Found | None:
    """Take the instruction at an address apart; None: it is not emulated."""
    at, prefixes, rex = address, set(), 0
    for _ in range(_MOST_PREFIXES):
        byte = fetch(at)
        if byte in PREFIXES:
            prefixes.add(byte)
            rex = 0
        elif long_mode and byte in _REX:
            rex = byte
        else:
            break
        at += 1
    kind = _kind(fetch, at, prefixes, rex, long_mode=long_mode)
    return kind and _Found(kind, at, frozenset(prefixes), rex)


def _kind(fetch: Callable[[int], int], at: int, prefixes: set[int], rex: int, *, long_mode: bool) -> _Kind | None:
    first = fetch(at)
    if first == _PAUSE and _REPEAT in prefixes and LOCK not in prefixes and not rex & _REX_B:
        return _Kind.PAUSE
    if first == _X87 and LOCK not in prefixes:
        return _Kind.X87 if fetch(at + 1) in x87.OPERATIONS else None
    if first != _ESCAPE:
        kind = _Kind.PROTECTED if first in _PORTS else _missing(fetch, at, first, long_mode=long_mode)
        refused = kind is None and LOCK in prefixes and not lockable(first, lambda: fetch(at + 1), escape=False)
    else:
        second = fetch(at + 1)
        kind = _escaped(second, lambda: fetch(at + 2), prefixes)
        refused = kind is None and LOCK in prefixes and not lockable(second, lambda: fetch(at + 2), escape=True)
    return _Kind.UNKNOWN if refused else kind


def _escaped(second: int, third: Callable[[], int], prefixes: set[int]) -> _Kind | None:
    if second == _RDTSCP[0]:
        return _Kind.COUNTER_AND_CPU if third() == _RDTSCP[1] else None
    if second == _RDRAND:
        # With f3 the upper half is rdpid, which the CPU does not have.
        random = range(_RDRAND_REGISTER, _RDSEED_REGISTER if _REPEAT in prefixes else 0x100)
        return _Kind.RANDOM if third() in random else None
    if LOCK in prefixes and second in _BIT_TESTS and third() >= _REGISTER:
        return _Kind.LOCKED
    marks = prefixes & {_OPERAND_SIZE, _REPEAT_NOT, _REPEAT}
    if (
        second in _SSE4A
        or (second == _STREAM and marks - {_OPERAND_SIZE})
        or (second == _GROUP_15 and marks and third() in _WAITS)
    ):
        return _Kind.UNKNOWN
    return _KINDS.get(second)


def _missing(fetch: Callable[[int], int], at: int, first: int, *, long_mode: bool) -> _Kind | None:
    """Return UNKNOWN for an instruction of a feature that the CPU does not have."""
    if first in _ONE_OF_GROUP:
        return _Kind.UNKNOWN if fetch(at + 1) & _REG else None
    if first not in {_VEX_2, _VEX_3} or not (long_mode or fetch(at + 1) >= _REGISTER):
        return None
    if first == _VEX_3 and fetch(at + 3) in _BMI.get(fetch(at + 1) & _MAP, ()):
        return None
    return _Kind.UNKNOWN


def _found(cpu: ModelledCpu, fetch: Callable[[int], int], address: int, *, long_mode: bool, counter: bool) -> bool:
    found = _emulated(fetch, address, long_mode=long_mode)
    if found is None or (found.kind is _Kind.COUNTER and not counter):
        return False
    if found.kind is _Kind.PAUSE:
        return is_stepped(cpu)
    if found.kind is _Kind.X87:
        return has_x87(cpu)
    return found.kind not in _USER_ONLY or in_user_mode(cpu)


def _serve(cpu: ServingCpu, code: bytes, registers: tuple[str, ...], flags: str) -> int | Raise:
    found = _emulated(code.__getitem__, 0, long_mode=len(registers) > 8)
    assert found is not None
    if LOCK in found.prefixes:
        return invalid_opcode
    match found.kind:
        case _Kind.PROTECTED:
            return general_protection
        case _Kind.COUNTER | _Kind.COUNTER_AND_CPU:
            return found.at + _count(cpu, registers, with_cpu=found.kind is _Kind.COUNTER_AND_CPU)
        case _Kind.PAUSE:
            return found.at + 1
        case _Kind.X87:
            x87.execute(cpu, code[found.at + 1])
            return found.at + 2
        case _Kind.IDENTITY:
            return found.at + _identify(cpu, registers)
        case _Kind.RANDOM:
            return found.at + _draw(cpu, found, registers[code[found.at + 2] & 7 | (found.rex & _REX_B) << 3], flags)
        case _:
            return invalid_opcode


def _count(cpu: ServingCpu, registers: tuple[str, ...], *, with_cpu: bool) -> int:
    """Read the time-stamp counter, of 1 GHz; return the length of the opcode."""
    a, c, d = registers[:3]
    cpu.write_register(a, cpu.time() & _HALF)
    cpu.write_register(d, cpu.time() >> 32 & _HALF)
    if not with_cpu:
        return 2
    cpu.write_register(c, cpu.cpu_number())  # TSC_AUX, as Linux sets it (vdso_setup_cpu)
    return 3


def _identify(cpu: ServingCpu, registers: tuple[str, ...]) -> int:
    """Answer cpuid; return the length of the opcode."""
    a, c, d, b = registers[:4]
    leaf, subleaf = (cpu.read_register(name) & _HALF for name in (a, c))
    found = answer(leaf, subleaf, cpu.read_register("cr4"), long_mode=len(registers) > 8)
    for name, value in zip((a, b, c, d), found, strict=True):
        cpu.write_register(name, value)
    return 2


def _draw(cpu: ServingCpu, found: _Found, register: str, flags: str) -> int:
    """Put a random number into a register; return the length of opcode and ModRM."""
    value = cpu.random()
    if found.rex & _REX_W:
        cpu.write_register(register, value)
    elif _OPERAND_SIZE in found.prefixes:
        cpu.write_register(register, cpu.read_register(register) & ~0xFFFF | value & 0xFFFF)
    else:
        cpu.write_register(register, value & _HALF)
    cpu.write_register(flags, cpu.read_register(flags) & ~_FLAGS | _CARRY)
    return 3


def emulated(registers: tuple[str, ...], flags: str, *, counter: bool = True) -> EmulatedInstructions:
    """Return the emulated instructions of a mode whose registers these are, by their numbers.

    `counter`: rdtsc is one of them; else a hook of the user's answers it.
    """
    return EmulatedInstructions(
        found=partial(_found, long_mode=len(registers) > 8, counter=counter),
        fetch_unit=1,
        serve=lambda cpu, code: _serve(cpu, code, registers, flags),
        after=lambda cpu: single_step if is_stepped(cpu) else None,
    )
