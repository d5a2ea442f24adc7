"""Cases of system calls that are refused or do nothing: which registers they change, and how arguments are cut."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Final

from emu.isa import ISAS
from tests.fuzz.judge.case import Case
from tests.fuzz.judge.encoders import ENCODERS
from tests.fuzz.judge.judges import QEMU

# Refused with EBADF for this descriptor, whatever the other arguments are.
_REFUSED: Final = (
    "close read write lseek dup readv writev pread64 pwrite64 ftruncate fchdir fchmod flock fdatasync".split()
)
_NO_DESCRIPTOR: Final = (1 << 64) - 1
# qemu-user looks at the other arguments first for the others, and cuts the number on every ISA.
_REFUSED_BY_QEMU: Final = "close lseek dup fchdir fchmod fdatasync".split()
_NOTHING: Final = "sched_yield"
# A number that no ISA has.
_UNKNOWN: Final = 0x1FFF


@dataclass(frozen=True)
class _Entry:
    """The way into the kernel: the instruction, and the registers of the number and the first argument."""

    instruction: bytes
    number: int
    first: int


_ENTRIES: Final = {
    "x86_64": _Entry(bytes.fromhex("0f05"), 0, 7),
    "i386": _Entry(bytes.fromhex("cd80"), 0, 3),
    "aarch64": _Entry(bytes.fromhex("010000d4"), 8, 0),
    "riscv64": _Entry(bytes.fromhex("73000000"), 17, 10),
}


def calls(random: Random, isa: str) -> Case:
    """Return a case of one or two system calls with the same registers."""
    general, vectors, flags, control = ENCODERS[isa].state(random, isa)
    entry = _ENTRIES[isa]
    numbers = {name: number for number, name in ISAS[isa].linux.calls.items()}
    name = random.choice(
        [*(name for name in (_REFUSED_BY_QEMU if isa in QEMU else _REFUSED) if name in numbers), _NOTHING, "unknown"]
    )
    registers = list(general)
    registers[entry.number] = numbers.get(name, _UNKNOWN)
    registers[entry.first] = _NO_DESCRIPTOR & ISAS[isa].address_mask
    if isa not in QEMU and random.random() < 0.3:
        registers[entry.number] |= random.getrandbits(32) << 32 & ISAS[isa].address_mask
        registers[entry.first] &= 0xFFFFFFFF
    code = entry.instruction * random.choice((1, 1, 2))
    return Case(code, ("call", name), tuple(registers), vectors, flags, control)
