"""Random x86 instructions: what capstone decodes, but for those whose result is the system's or the CPU model's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

import capstone
import capstone.x86

from tests.fuzz.judge import values
from tests.fuzz.judge.case import Case

# mxcsr and the x87's control word as Linux starts a program.
CONTROL: Final = 0x1F80 | 0x37F << 32
_CF, _PF, _AF, _ZF, _SF, _OF = 1, 4, 0x10, 0x40, 0x80, 0x800
FLAGS: Final = _CF | _PF | _AF | _ZF | _SF | _OF
_SHIFTS: Final = _CF | _AF | _OF

# What the guest's CPU does not have (its cpuid, leaves 1, 7 and 0x80000001), by capstone's groups.
LACKING: Final = frozenset(
    "avx avx2 avx512 fma fma4 xop tbm sse4a 3dnow adx sha rtm hle cdi eri dqi bwi pfi vlx novlx sgx smap vm".split()
)
_LACKING_NAMES: Final = frozenset(
    "rdpid clwb clflushopt clzero pcommit invpcid getsec monitorx mwaitx ptwrite tpause umonitor umwait "
    "rdpkru wrpkru xsaves xsaves64 xrstors xrstors64 xsavec xsavec64 montmul xstore xsha1 "
    "xsha256 xcryptecb xcryptcbc xcryptctr xcryptcfb xcryptofb incsspd incsspq rdsspd rdsspq saveprevssp rstorssp "
    "wrssd wrssq wrussd wrussq setssbsy clrssbsy gf2p8mulb gf2p8affineqb gf2p8affineinvqb movdir64b movdiri".split()
)
# The host's and the guest's results may differ, and both are right: time, CPU, random numbers, privileged tables,
# system calls; selectors, and images of the whole state, which have reserved bytes.
_OWN: Final = frozenset(
    "rdtsc rdtscp rdpmc rdrand rdseed cpuid xgetbv syscall sysenter sysexit sysret int int1 iret iretd iretq retf "
    "retfq "
    "lcall ljmp lds les lss lfs lgs lar lsl verr verw sgdt sidt sldt str smsw xsave xsave64 xrstor xrstor64 fxsave "
    "fxsave64 "
    "fxrstor fxrstor64 fnsave fnstenv fsave fstenv fldenv frstor rdfsbase wrfsbase rdgsbase wrgsbase swapgs monitor "
    "mwait xsaveopt xsaveopt64 "
    "popf popfd popfq arpl bound sysretq sysexitq vmcall vmmcall vmfunc encls enclu hlt cli sti salc lwpval endbr32 "
    "endbr64 "
    "ud0 ud1 ud2 ud2b ffreep fnop femms pause".split()
)
# Approximations, whose digits are the CPU model's.
_APPROXIMATE: Final = frozenset("rcpps rcpss rsqrtps rsqrtss".split())

_DOUBLE_SHIFTS, _SHORT = frozenset(("shld", "shrd")), 2
_UNDEFINED: Final = {
    **dict.fromkeys(("mul", "imul"), _SF_ZF_AF_PF := _SF | _ZF | _AF | _PF),
    **dict.fromkeys(("div", "idiv"), FLAGS),
    **dict.fromkeys(("and", "or", "xor", "test", "andn"), _AF),
    **dict.fromkeys(("shl", "shr", "sar", "sal"), _SHIFTS),
    **dict.fromkeys(("rol", "ror", "rcl", "rcr"), _OF),
    **dict.fromkeys(("shld", "shrd"), _SHIFTS),
    **dict.fromkeys(("bsf", "bsr"), FLAGS & ~_ZF),
    **dict.fromkeys(("bt", "bts", "btr", "btc"), FLAGS & ~_CF & ~_ZF),
    **dict.fromkeys(("lzcnt", "tzcnt"), FLAGS & ~_CF & ~_ZF),
    **dict.fromkeys(("bextr", "blsi", "blsr", "blsmsk", "bzhi"), _AF | _PF | _SF),
    **dict.fromkeys(("aaa", "aas"), FLAGS & ~_CF & ~_AF),
    **dict.fromkeys(("aam", "aad"), _CF | _AF | _OF),
    **dict.fromkeys(("daa", "das"), _OF),
}


@cache
def _decoder(isa: str) -> capstone.Cs:
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64 if isa == "x86_64" else capstone.CS_MODE_32)
    decoder.detail = True
    return decoder


def _bytes(random: Random, isa: str) -> bytes:
    """Return random bytes that are often an instruction."""
    code = bytearray()
    while random.random() < 0.25:
        code.append(random.choice((0x66, 0x66, 0x66, 0xF2, 0xF3, 0xF3, 0x67, 0xF0, 0x2E, 0x3E)))
    if isa == "x86_64" and random.random() < 0.4:
        code.append(0x40 | random.randrange(16))
    match random.randrange(10):
        case 0 | 1 | 2:
            code.append(random.randrange(256))
        case 3 | 4 | 5 | 6:
            code += bytes((0x0F, random.randrange(256)))
        case 7:
            code += bytes((0x0F, 0x38, random.randrange(256)))
        case 8:
            code += bytes((0x0F, 0x3A, random.randrange(256)))
        case _:
            code += bytes((random.randrange(0xD8, 0xE0),))
    code.append(random.randrange(256))  # ModRM
    code += bytes((random.randrange(256), random.randrange(-64, 64) & 0xFF))
    code += bytes(random.choice((0, 0, 0xFF, random.randrange(256))) for _ in range(8))
    return bytes(code)


def _one(random: Random, isa: str) -> tuple[bytes, capstone.CsInsn]:
    """Return an instruction that the judge can try."""
    while True:
        code = _bytes(random, isa)
        found = next(_decoder(isa).disasm(code, 0x1000), None)
        if found is None:
            continue
        name = found.mnemonic.split()[-1]
        if name in _OWN or (found.mnemonic.startswith(("rep", "bnd", "notrack")) and name in ("ins", "outs")):
            continue
        groups = set(found.groups)
        if capstone.CS_GRP_JUMP in groups or capstone.CS_GRP_CALL in groups:
            relative = capstone.CS_GRP_BRANCH_RELATIVE in groups
            if relative and not 0 <= found.operands[0].imm - 0x1000 - found.size < 8:
                continue
        # Hints are nops, also where cpuid has none of them; QEMU reads an operand of 3DNow! before it refuses it.
        if name.startswith("prefetch") or (_is_3dnow(found) and code[found.modrm_offset] < 0xC0):
            continue
        if {0xF2, 0xF3} & set(code[: found.size - 2]) and name.startswith("loop"):  # undefined
            continue
        if any(operand.type == capstone.x86.X86_OP_REG and _system(found, operand.reg) for operand in found.operands):
            continue
        return code[: found.size], found


def _system(found: capstone.CsInsn, register: int) -> bool:
    name = found.reg_name(register)
    return name in ("cs", "ds", "es", "fs", "gs", "ss") or name[:2] in ("cr", "dr")


def _lacks(found: capstone.CsInsn) -> bool:
    names = {found.group_name(group) for group in found.groups}
    return bool(names & LACKING) or found.mnemonic in _LACKING_NAMES


def _is_3dnow(found: capstone.CsInsn) -> bool:
    return "3dnow" in {found.group_name(group) for group in found.groups}


def _undefined(found: capstone.CsInsn) -> int:
    name = found.mnemonic.split()[-1]
    return _UNDEFINED.get(name, 0)


def state(random: Random, isa: str) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """Return general registers, vectors and the x87's stack, flags, and control words."""
    count = 16 if isa == "x86_64" else 8
    general = [values.general(random) for _ in range(count)]
    if random.random() < 0.5:
        general[1] = random.randrange(70)
    general[4] = values.stack(random)
    if isa == "i386":
        general = [value & 0xFFFFFFFF for value in general]
    vectors = (
        [values.lane(random) for _ in range(32)]
        if isa == "x86_64"
        else [values.lane(random) for _ in range(16)] + [0] * 16
    )
    for _ in range(8):
        vectors += _extended(random)
    control = CONTROL
    if random.random() < 0.2:
        control = (random.getrandbits(2) << 13 | 0x1F80) | (
            0x37F & ~0xF00 | random.choice((0, 2, 3)) << 8 | random.getrandbits(2) << 10
        ) << 32
    top = random.choice((0, 0, 7, 6, 5, 4, 2))
    control |= (top << 11) << 48
    full = random.choice((-top % 8, -top % 8, 8, 0))
    valid = sum(1 << (top + index) % 8 for index in range(full))
    return tuple(general), tuple(vectors), random.getrandbits(12) & FLAGS | valid << 32, control


def _extended(random: Random) -> tuple[int, int]:
    """Return the two words of an x87 register: a number of double precision, or an edge."""
    if random.random() < 0.3:
        return random.choice((
            (0, 0), (0, 0x8000), (1 << 63, 0x3FFF), (1 << 63, 0xBFFF), (1 << 63, 0x7FFF), (1 << 63, 0xFFFF),
            (3 << 62, 0x7FFF), (0xA << 60, 0x7FFF), (1, 0), (1 << 63, 1), ((1 << 64) - 1, 0x7FFE),
            (0xC90FDAA22168C235, 0x4000),
        ))  # fmt: skip
    return random.getrandbits(64) | 1 << 63, random.randrange(0x3FE0, 0x4020) | random.getrandbits(1) << 15


def instructions(random: Random, isa: str) -> Case:
    """Return a case of one to three instructions."""
    code, names, flags = b"", [], 0
    refused = False
    ignored: set[str] = set()
    for _ in range(random.choice((1, 1, 2, 3))):
        one, found = _one(random, isa)
        lacks = _lacks(found)
        if lacks and code:
            break
        code += one
        names.append(found.mnemonic)
        if found.mnemonic in _APPROXIMATE:
            ignored.add("vectors")
        if (
            found.mnemonic.split()[-1] in _DOUBLE_SHIFTS and found.operands[0].size == _SHORT
        ):  # undefined from 17 bits on
            ignored |= {"general", "data"}
        flags = _undefined(found)
        if lacks:
            refused = True
            break
        if flags or ignored or capstone.CS_GRP_JUMP in found.groups:
            break
    general, vectors, before, control = state(random, isa)
    return Case(
        code, tuple(names), general, vectors, before, control, seed=random.getrandbits(32),
        ignored=frozenset(ignored), ignored_flags=flags, refused=refused,
    )  # fmt: skip


def disassembly(isa: str, code: bytes) -> Iterator[str]:
    """Return the instructions as text."""
    for found in _decoder(isa).disasm(code, 0x1000_0000):
        yield f"{found.bytes.hex()} {found.mnemonic} {found.op_str}"
