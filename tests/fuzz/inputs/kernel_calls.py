"""System calls with random arguments, made by a program of the kernel guest.

The program waits until there are calls in its memory.  The four guests are booted once, up to that
wait; a case is a fork of them.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from emu.guest.base import RunState
from emu.guest.kernel.panic import KernelPanicError
from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.rooted import DATA, executable
from trapline.machine.kernel_machine import KernelMachine, KernelOptions, boot, kernel_guest

_CALLS: Final = 16
_MILLISECOND: Final = 1_000_000
# Virtual time of a case: the shell has said that it lives by then.
_TIME: Final = 300 * _MILLISECOND
_SCRIPT: Final = "fuzz &\nsleep 0.05\necho still here\n"
_ALIVE: Final = b"still here"
# Waits for a word at DATA, then makes the calls at DATA + _TABLE, seven words each, up to a number below 0, and exits.
_PROGRAMS: Final = {
    "x86_64": "bb00006000 48833b00 74fa 488dab00070000 488b4500 4885c0 7820 488b7d08 488b7510 488b5518 4c8b5520"
    " 4c8b4528 4c8b4d30 0f05 4883c538 ebd7 b801000000 31ff 0f05",
    "i386": "bb00006000 833b00 74fb 8dab00070000 8b4504 85c0 7821 ff7530 ff7528 ff7520 ff7518 ff7510 ff7508 6a00 8b4500"
    " cd80 83c41c 83c538 ebd8 6a00 6a00 b801000000 cd80",
    "aarch64": "130ca0d2 690240f9 e9ffffb4 74021c91 880240f9 e800f8b7 808640a9 828e41a9 849642a9 010000d4 94e20091"
    " f9ffff17 280080d2 000080d2 010000d4",
    "riscv64": "b7046000 03b30400 e30e03fe 13890470 83320900 63c40202 03358900 83350901 03368901 83360902 03378902"
    " 83370903 73000000 13098903 6ff09ffd 93021000 13050000 73000000",
}
_CALL: Final = struct.Struct("<7Q")
# Where the calls are in the program's first page of data; the second page is not there until it is touched.
_TABLE: Final = 0x700
_PAGE: Final = 4096
_PATHS: Final = (b"/etc/motd", b"/bin/ls", b"/no/such", b"/dev/null", b"/dev/random", b"/", b"", b"/tmp/new", b"/tmp",
                 b"/dev/dtrace/helper", b"/dev/dtrace/dtrace", b"/dev/dtrace/fasttrap", b"../..",
                 b"/boot/kernel/echo.ko")  # fmt: skip
_EXTREMES: Final = ((1 << 64) - 1, (1 << 31) - 1, 1 << 31, 0x1000, 0x7FFF_E000, 0x7FFF_F000, (1 << 64) - 4096, 1,
                    0xFFFF_FFFF_8020_0000, 0xFFFF_FFFF_83FF_8000, 0xC000_0000, 0x8000_0000_0000)  # fmt: skip
# First words of ioctl requests that have a handler: "dtrace" and "fasttrap" of sys/dtrace.h, terminals, helpers.
_REQUESTS: Final = tuple(
    direction << 29 | size << 16 | letter << 8 | number
    for direction in (1, 2, 4, 6) for size in (0, 4, 8, 16, 64, 1024) for letter in (ord("x"), ord("z"), ord("t"))
    for number in range(1, 24)
)  # fmt: skip
_NUMBERS: Final = Path(__file__).parents[3] / "testbins" / "kernel" / "sys" / "syscalls.def"


@cache
def _numbers() -> dict[str, int]:
    found = re.findall(r"SYSCALL\((\d+), (\w+)\)", _NUMBERS.read_text())
    return {name: int(number) for number, name in found}


@dataclass
class _Machine:
    """A guest whose program waits for calls."""

    machine: KernelMachine
    screen: bytearray
    pid: int


class KernelCalls(Fuzzer):
    """Random system calls of the kernel guest, DTrace's devices among them."""

    name = "kernel-calls"
    expected = ()
    seconds = 20.0
    forks = True
    quick = 40
    compared = 4

    def __init__(self) -> None:
        self._machines: list[_Machine] = []

    def warm(self) -> None:
        """Boot a guest of each ISA, up to where its program waits."""
        super().warm()
        if not self._machines:
            self._machines = [_booted(name) for name in ISAS]

    def make(self, random: Random) -> bytes:
        """Make an ISA's number, the program's data, and calls."""
        data = bytearray(random.randbytes(64) * (_TABLE // 64))
        for at in range(0, _TABLE, 64):
            text = _content(random)
            data[at : at + len(text)] = text[:64]
        data[:8] = struct.pack("<Q", 1)
        calls = b"".join(_CALL.pack(*_call(random)) for _ in range(_CALLS))
        return bytes((random.randrange(len(ISAS)),)) + bytes(data) + calls

    def run(self, case: bytes) -> str:
        """Make the calls; the kernel must survive them."""
        one = self._machines[case[0]]
        guest = one.machine.guest
        calls = b"".join(_CALL.pack(*_own(words, one.pid)) for words in _CALL.iter_unpack(case[1 + _TABLE :]))
        guest.user_store(DATA + _TABLE, calls + struct.pack("<7q", *[-1] * 7))
        guest.user_store(DATA, case[1 : 1 + _TABLE])
        state = guest.run(guest.now() + _TIME)
        alive = "the shell lives" if _ALIVE in one.screen else "the shell says nothing"
        ended = "off" if state is RunState.FINISHED else "on"
        return f"{alive}, power {ended}: {guest.engine.instructions} instructions"


def _booted(name: str) -> _Machine:
    isa = ISAS[name]
    screen = bytearray()
    program = executable(isa, bytes.fromhex(_PROGRAMS[name]))
    options = KernelOptions(isa, command=_SCRIPT, added={"bin/fuzz": program}, console=screen.extend)
    machine = boot(kernel_guest(options))
    guest = machine.guest
    while not (guest.thread().execname == "fuzz" and guest.engine.instructions and _waits(machine)):
        if guest.run(guest.now() + _MILLISECOND // 10) is RunState.FINISHED:
            raise KernelPanicError("the fuzzer's program did not come to its wait", {}, [])
    return _Machine(machine, screen, guest.thread().pid)


def _waits(machine: KernelMachine) -> bool:
    """Return whether the CPU is in the program's text, in user mode."""
    return DATA - 0x20_0000 <= machine.guest.engine.pc < DATA


def _own(words: tuple[int, ...], pid: int) -> tuple[int, ...]:
    """Return a call, with the program itself in the place of a process that would be sent a signal."""
    return (words[0], pid, *words[2:]) if words[0] == _numbers()["kill"] else words


def _call(random: Random) -> tuple[int, ...]:
    numbers = list(_numbers().values())
    while True:
        number = random.choice(numbers) if random.random() < 0.98 else random.choice((0, 8, 200, 599, 1000, 1 << 30))
        if number != _numbers()["reboot"]:
            break
    arguments = [_argument(random) for _ in range(6)]
    if number == _numbers()["ioctl"] and random.random() < 0.8:
        arguments[:2] = random.randrange(3, 9), random.choice(_REQUESTS)
    elif number == _numbers()["open"] and random.random() < 0.7:
        arguments[:2] = DATA + 64 * random.randrange(1, _TABLE // 64), random.choice((0, 1, 2, 0x200, 0x601))
    return number, *arguments


def _argument(random: Random) -> int:
    match random.randrange(7):
        case 0 | 1:
            return random.randrange(16)
        case 2 | 3:
            return DATA + 8 * random.randrange(_TABLE // 8)
        case 4:
            return random.choice(_EXTREMES)
        case 5:
            return DATA + random.choice((_PAGE, 2 * _PAGE)) - random.randrange(16)
        case _:
            return random.getrandbits(random.choice((4, 12, 31, 64)))


def _content(random: Random) -> bytes:
    """Make something that calls understand: a path, small numbers, pointers, an ELF header."""
    match random.randrange(6):
        case 0 | 1:
            return random.choice(_PATHS) + b"\0"
        case 2:
            return struct.pack("<8I", *(random.randrange(20) for _ in range(8)))
        case 3:
            return struct.pack("<8Q", *(_argument(random) for _ in range(8)))
        case 4:
            return b"\x7fELF" + random.randbytes(40) if random.random() < 0.3 else b"\x7fDOF" + random.randbytes(50)
        case _:
            return b""
