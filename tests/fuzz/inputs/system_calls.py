"""System calls with random arguments, made by a Linux program."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final

from emu.guest.linux.guest import LinuxGuest
from emu.guest.processes import ProcessObserver
from emu.isa import ISAS, Isa
from tests.fuzz.inputs.rooted import DATA, MILLISECOND, NATIVE, RootedFuzzer

# The content of the file in the root.
_TEXT: Final = "a file\n" * 100
_CALLS: Final = 24
_ARGUMENTS: Final = 6
# Virtual milliseconds that a case may take: longer than most waits that it asks for.
_TIME: Final = 200
# Calls after which little comes: they are made now and then.
_ENDINGS: Final = frozenset("exit exit_group pause rt_sigsuspend rt_sigreturn sigreturn execve vfork".split())
_RARELY: Final = 0.02
# Pairs of a call and the one that it makes sense with, which chance alone seldom finds.
_FRIENDS: Final = {
    "socket": "bind listen connect sendto setsockopt", "socketpair": "sendmsg recvmsg shutdown write read",
    "epoll_create1": "epoll_ctl epoll_pwait epoll_wait", "pipe2": "splice tee vmsplice write read fcntl",
    "openat": "read write lseek ioctl ftruncate mmap fallocate sendfile", "timerfd_create": "timerfd_settime read",
    "timer_create": "timer_settime timer_gettime timer_delete", "signalfd4": "kill read", "clone": "wait4 waitid",
    "eventfd2": "write read", "memfd_create": "ftruncate mmap copy_file_range", "shmget": "shmat shmctl",
}  # fmt: skip
_CALL: Final = struct.Struct("<H6Q")
_MEMORY: Final = 2048
_EDGES: Final = (0, 0, 8, 16, 64, 4096, 100_000, (1 << 31) - 1, (1 << 32) - 1, (1 << 64) - 100, (1 << 64) - 1)
_PATHS: Final = (b"/program", b"/tmp/a", b"/tmp", b"/dev/ptmx", b"/dev/pts/0", b"/proc/self/fd/3", b"/proc/self/maps",
                 b"..", b"", b"/dev/tty", b"/proc/self/mem", b"/tmp/sock")  # fmt: skip


class _Script(ProcessObserver):
    """Puts the next call's number and arguments into the registers whenever a call is over."""

    def __init__(self, guest: LinuxGuest, calls: Sequence[tuple[int, ...]]) -> None:
        self._guest = guest
        self._calls = iter(calls)

    def load(self) -> None:
        """Load the next call; when there are none left, exit_group."""
        kernel = self._guest.kernel
        following = next(self._calls, (_numbers(kernel.isa.name)["exit_group"], 0))
        kernel.engine.write_register(kernel.abi.call_number, following[0])
        for name, value in zip(kernel.isa.calling.system_call_arguments, following[1:], strict=False):
            kernel.engine.write_register(name, value & kernel.isa.address_mask)

    def system_call_done(self, thread: Any, name: str, result: int) -> None:
        """Go on."""
        del name, result
        if thread is self._guest.kernel.current:
            self.load()


class SystemCalls(RootedFuzzer):
    """Random system calls."""

    name = "system-calls"

    def prepare(self, folder: Path) -> None:
        """Make a root for the guest with a file in it."""
        super().prepare(folder)
        (self.root / "tmp").mkdir()
        (self.root / "tmp/a").write_text(_TEXT)

    def make(self, random: Random) -> bytes:
        """Make an ISA's number, whether the engine is native, the program's data, and calls."""
        number = random.randrange(len(ISAS))
        isa = list(ISAS.values())[number]
        data = bytearray(random.randbytes(64) * (_MEMORY // 64))
        for at in range(0, _MEMORY - 64, 64):
            self._fill(random, data, at)
        calls = b"".join(_CALL.pack(*one) for one in self._calls(random, isa))
        native = random.random() < NATIVE
        return bytes((number, native)) + bytes(data) + calls

    @staticmethod
    def _fill(random: Random, data: bytearray, at: int) -> None:
        """Put something that calls understand into the data: a path, an address, small numbers, pointers."""
        choice = random.randrange(6)
        if choice == 0:
            text = random.choice(_PATHS) + b"\0"
        elif choice == 1:
            text = struct.pack("<H", random.choice((0, 1, 2, 10, 16))) + random.choice(_PATHS) + b"\0"
        elif choice == 2:
            text = struct.pack("<8I", *(random.randrange(16) for _ in range(8)))
        elif choice == 3:
            text = struct.pack("<6Q", *(_value(random) for _ in range(6)))
        elif choice == 4:
            text = struct.pack("<4Q", *(_value(random) if random.random() < 0.5 else 32 for _ in range(4)))
        else:
            return
        data[at : at + len(text)] = text

    @staticmethod
    def _calls(random: Random, isa: Isa) -> list[tuple[int, ...]]:
        numbers = _numbers(isa.name)
        names, starts = list(numbers), _starts(isa.name)
        chosen: list[str] = []
        while len(chosen) < _CALLS:
            name = random.choice(names)
            if name in _ENDINGS and random.random() > _RARELY:
                continue
            if random.random() < 0.3:
                name, friends = random.choice(starts)
                chosen += [name, *random.choices(friends, k=3)]
            else:
                chosen.append(name)
        return [(numbers[name], *(_value(random) for _ in range(_ARGUMENTS))) for name in chosen]

    def run(self, case: bytes) -> str:
        """Make the calls, and look whether the guest kept to its root."""
        isa = list(ISAS.values())[case[0]]
        data, calls = case[2 : 2 + _MEMORY], case[2 + _MEMORY :]
        guest = self.guest(isa, isa.linux.system_call * 4 * _CALLS, ram=128 << 20, accelerated=bool(case[1]))
        guest.user_store(DATA, data)
        script = _Script(guest, list(_CALL.iter_unpack(calls[: len(calls) // _CALL.size * _CALL.size])))
        guest.kernel.observers.append(script)
        script.load()
        try:
            guest.run(_TIME * MILLISECOND)
        finally:
            self.check_root("tmp")
            assert (self.root / "tmp/a").read_text() == _TEXT, "the guest changed a file of the host"
        return f"{guest.ending() or 'runs on'}: {guest.engine.instructions} instructions, at {guest.now()} ns"


def _value(random: Random) -> int:
    """Return an argument: a descriptor, flags, an address of the data, a size, or anything."""
    choice = random.randrange(8)
    if choice < 2:
        return random.randrange(12)
    if choice < 5:
        return DATA + random.randrange(0, _MEMORY, 64)
    if choice == 5:
        return 1 << random.randrange(32)
    if choice == 6:
        return random.choice(_EDGES)
    return random.getrandbits(random.choice((8, 16, 32, 64)))


@cache
def _numbers(isa: str) -> dict[str, int]:
    return {name: number for number, name in ISAS[isa].linux.calls.items()}


@cache
def _starts(isa: str) -> list[tuple[str, list[str]]]:
    """Return the calls that have friends, each with those that the ISA has."""
    numbers = _numbers(isa)
    return [(name, [one for one in friends.split() if one in numbers]) for name, friends in _FRIENDS.items()
            if name in numbers]  # fmt: skip
