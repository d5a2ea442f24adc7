"""Random AArch64 and RISC-V instructions: what capstone decodes, but for those whose result is the system's own."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from random import Random
from typing import Final

import capstone

from tests.fuzz.judge import values
from tests.fuzz.judge.case import CODE, Case

# System calls, waits, branches (a backward one may never end), and what reads time.
_OWN: Final = frozenset(
    "svc hvc smc wfe wfi eret drps hlt dcps1 dcps2 dcps3 msr mrs sys sysl at tlbi dc ic ecall mret sret uret wfi "
    "sfence.vma rdcycle rdtime rdinstret rdcycleh rdtimeh rdinstreth csrr csrw csrs csrc csrwi csrsi csrci csrrw "
    "csrrs csrrc "
    "csrrwi csrrsi csrrci fence.i dret sfence.w.inval sfence.inval.ir hfence.vvma hfence.gvma hfence.bvma "
    "ldxr stxr".split()
)
_BRANCHES: Final = frozenset(
    (capstone.CS_GRP_JUMP, capstone.CS_GRP_CALL, capstone.CS_GRP_BRANCH_RELATIVE, capstone.CS_GRP_RET)
)
# An A64 instruction's bits 28 to 25 by what they are, and how often each is drawn.
_A64: Final = ((0b1000, 2), (0b1010, 1), (0b0100, 3), (0b0101, 4), (0b0111, 5), (0b1101, 3), (0b1111, 4))
# RISC-V opcodes of four bytes.
_RISCV: Final = (
    0x03,
    0x07,
    0x13,
    0x17,
    0x1B,
    0x23,
    0x27,
    0x2F,
    0x33,
    0x37,
    0x3B,
    0x43,
    0x47,
    0x4B,
    0x4F,
    0x53,
    0x53,
    0x53,
)


@cache
def _decoder(isa: str) -> capstone.Cs:
    if isa == "aarch64":
        decoder = capstone.Cs(capstone.CS_ARCH_ARM64, capstone.CS_MODE_ARM)
    else:
        decoder = capstone.Cs(capstone.CS_ARCH_RISCV, capstone.CS_MODE_RISCV64 | capstone.CS_MODE_RISCVC)
    decoder.detail = True
    return decoder


def _bytes(random: Random, isa: str) -> bytes:
    word = random.getrandbits(32)
    if isa == "aarch64":
        kinds, weights = zip(*_A64, strict=True)
        word = word & ~(0xF << 25) | random.choices(kinds, weights)[0] << 25
        if random.random() < 0.5:  # registers of the first eight are written and read again
            word &= ~(0x18 | 0x18 << 5 | 0x18 << 16)
        return word.to_bytes(4, "little")
    if random.random() < 0.25:
        half = random.getrandbits(16)
        return (half if half & 3 != 3 else half ^ random.randrange(1, 4)).to_bytes(2, "little")
    word = word & ~0x7F | random.choice(_RISCV)
    if random.random() < 0.6:
        word &= ~(0x7F << 25)
        word |= (
            random.choice(
                (
                    0,
                    0,
                    0x20,
                    1,
                    4,
                    5,
                    8,
                    9,
                    0xC,
                    0xD,
                    0x10,
                    0x11,
                    0x14,
                    0x15,
                    0x2C,
                    0x2D,
                    0x50,
                    0x51,
                    0x60,
                    0x61,
                    0x68,
                    0x69,
                    0x70,
                    0x71,
                    0x78,
                    0x79,
                )
            )
            << 25
        )
    if random.random() < 0.5:
        word &= ~(0x18 << 7 | 0x18 << 15 | 0x18 << 20)
    return word.to_bytes(4, "little")


def _one(random: Random, isa: str) -> tuple[bytes, str, bool]:
    """Return an instruction that the judge can try, its mnemonic, and whether it may go elsewhere."""
    while True:
        code = _bytes(random, isa)
        found = next(_decoder(isa).disasm(code, CODE), None)
        if found is None or found.mnemonic in _OWN:
            continue
        branches = bool(_BRANCHES & set(found.groups)) or found.mnemonic in (
            "jal",
            "jalr",
            "j",
            "jr",
            "ret",
            "c.j",
            "c.jr",
            "c.jalr",
        )
        if branches and any(operand.type == capstone.CS_OP_IMM for operand in found.operands):
            continue
        return code[: found.size], found.mnemonic, branches


def state(random: Random, isa: str) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
    """Return general registers, vectors, flags, and control words."""
    general = [values.general(random) for _ in range(32)]
    general[31 if isa == "aarch64" else 2] = values.stack(random)
    if isa == "aarch64":
        vectors = [values.lane(random) for _ in range(64)]
        control = 0 if random.random() < 0.7 else random.getrandbits(5) << 22
        return tuple(general), tuple(vectors), random.getrandbits(4) << 28, control
    vectors = [
        values.single(random) | 0xFFFFFFFF << 32 if random.random() < 0.45 else values.lane(random) for _ in range(32)
    ]
    return tuple(general), tuple(vectors), 0, (0 if random.random() < 0.7 else random.randrange(5) << 5)


def instructions(random: Random, isa: str) -> Case:
    """Return a case of one to three instructions."""
    code, names = b"", []
    for _ in range(random.choice((1, 1, 2, 3))):
        one, name, branches = _one(random, isa)
        code += one
        names.append(name)
        if branches:
            break
    general, vectors, flags, control = state(random, isa)
    return Case(code, tuple(names), general, vectors, flags, control, seed=random.getrandbits(32))


def disassembly(isa: str, code: bytes) -> Iterator[str]:
    """Return the instructions as text."""
    for found in _decoder(isa).disasm(code, CODE):
        yield f"{found.bytes.hex()} {found.mnemonic} {found.op_str}"
