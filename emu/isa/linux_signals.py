"""Signals of Linux (include/uapi/asm-generic/signal.h, siginfo.h), and registers in frames."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import Any, Final, NamedTuple, Protocol

from emu.isa.unicorn_model import VectorFile
from emu.support.immutable import immutable

SIGINFO_SIZE: Final = 128


class Signal(IntEnum):
    """Signals by number; those from 34 on are the real-time ones that programs may use."""

    SIGHUP = 1
    SIGINT = 2
    SIGQUIT = 3
    SIGILL = 4
    SIGTRAP = 5
    SIGABRT = 6
    SIGBUS = 7
    SIGFPE = 8
    SIGKILL = 9
    SIGUSR1 = 10
    SIGSEGV = 11
    SIGUSR2 = 12
    SIGPIPE = 13
    SIGALRM = 14
    SIGTERM = 15
    SIGSTKFLT = 16
    SIGCHLD = 17
    SIGCONT = 18
    SIGSTOP = 19
    SIGTSTP = 20
    SIGTTIN = 21
    SIGTTOU = 22
    SIGURG = 23
    SIGXCPU = 24
    SIGXFSZ = 25
    SIGVTALRM = 26
    SIGPROF = 27
    SIGWINCH = 28
    SIGIO = 29
    SIGPWR = 30
    SIGSYS = 31


LAST: Final = 64
DEFAULT: Final = 0
# SIG_DFL and SIG_IGN, as handlers.
IGNORE: Final = 1

STOPPING: Final = frozenset({Signal.SIGSTOP, Signal.SIGTSTP, Signal.SIGTTIN, Signal.SIGTTOU})
# The signals that a process without a handler ignores.
IGNORED: Final = frozenset({Signal.SIGCHLD, Signal.SIGCONT, Signal.SIGURG, Signal.SIGWINCH})
CORE: Final = frozenset(
    {
        Signal.SIGQUIT, Signal.SIGILL, Signal.SIGTRAP, Signal.SIGABRT, Signal.SIGBUS, Signal.SIGFPE, Signal.SIGSEGV,
        Signal.SIGSYS, Signal.SIGXCPU, Signal.SIGXFSZ,
    }
)  # fmt: skip
UNBLOCKABLE: Final = 1 << Signal.SIGKILL - 1 | 1 << Signal.SIGSTOP - 1

SA_NOCLDSTOP: Final = 1
SA_NOCLDWAIT: Final = 2
SA_SIGINFO: Final = 4
SA_RESTORER: Final = 0x0400_0000
SA_ONSTACK: Final = 0x0800_0000
SA_RESTART: Final = 0x1000_0000
SA_NODEFER: Final = 0x4000_0000
SA_RESETHAND: Final = 0x8000_0000

SI_USER: Final = 0
SI_KERNEL: Final = 0x80
SI_QUEUE: Final = -1
SI_TIMER: Final = -2
SI_MESGQ: Final = -3
SI_SIGIO: Final = -5
SI_TKILL: Final = -6
CLD_EXITED: Final = 1
CLD_KILLED: Final = 2
CLD_DUMPED: Final = 3
CLD_STOPPED: Final = 5
CLD_CONTINUED: Final = 6
ILL_ILLOPC: Final = 1
ILL_ILLOPN: Final = 2
FPE_INTDIV: Final = 1
SEGV_MAPERR: Final = 1
SEGV_ACCERR: Final = 2
BUS_ADRERR: Final = 2
BUS_ADRALN: Final = 1
TRAP_BRKPT: Final = 1
TRAP_TRACE: Final = 2
# FreeBSD sys/sys/signal.h: the signal of a tracepoint that could not be served.
TRAP_DTRACE: Final = 3


@immutable
class SignalInfo:
    """A signal that was sent (siginfo_t); only the fields that belong to its `code` are set."""

    number: int
    code: int = SI_USER
    pid: int = 0
    uid: int = 0
    status: int = 0
    value: int = 0
    address: int | None = None
    band: int = 0
    """Events of a file, in the bits of poll."""
    fd: int | None = None
    """The descriptor of the file with these events; None: the signal is not about a file."""

    def pack(self, word: int = 8) -> bytes:
        """Return the structure, with pointers of `word` bytes."""
        head = struct.pack("<iii", self.number, 0, self.code).ljust(8 + word, b"\0")
        pointer, long = ("Q", "q") if word == 8 else ("I", "i")
        if self.address is not None:
            body = struct.pack(f"<{pointer}", self.address)
        elif self.fd is not None:
            body = struct.pack(f"<{long}i", self.band, self.fd)
        elif self.number == Signal.SIGCHLD:
            body = struct.pack(f"<iIi{word - 4}x{long}{long}", self.pid, self.uid, self.status, 0, 0)
        else:
            body = struct.pack(f"<iI{pointer}", self.pid, self.uid, self.value & (1 << 8 * word) - 1)
        return (head + body).ljust(SIGINFO_SIZE, b"\0")


def name_of(number: int) -> str:
    """Return the name of a signal."""
    try:
        return Signal(number).name
    except ValueError:
        return f"SIGRT{number}"


class StateCpu(Protocol):
    """The CPU at a signal."""

    def read_register(self, name: str) -> int:
        """Return a register."""

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""

    def vectors(self) -> Sequence[Any]:
        """Return the bytes of each file of vector registers, which can be assigned."""


@immutable
class FrameState:
    """The area of a frame in which a kernel saves these registers."""

    size: int
    """Bytes of the area."""
    save: Callable[[StateCpu, int], bytes]
    """(CPU, error code of the thread's last fault) -> the area."""
    load: Callable[[StateCpu, bytes], None]
    """Loads the registers from the area."""
    at: int | None = None
    """Offset of the area in the frame; None: it lies above the frame."""
    unaligned: int = 0
    """Bytes of an area above the frame that precede its alignment."""
    pointer: int = 0
    """Offset in the frame of the address of an area above it."""
    reset: Callable[[StateCpu], None] | None = None
    """Sets the registers as a handler finds them; None: it finds those of the program."""


class Trap(NamedTuple):
    """The last fault of a thread, which the frames of all later signals tell."""

    number: int = 0
    error: int = 0
    address: int = 0


NO_TRAP: Final = Trap()


class PageFaultTrap(Protocol):
    """Returns what frames tell after a page fault; `present`: the page is mapped."""

    def __call__(self, address: int, /, *, write: bool, fetch: bool, present: bool) -> Trap:
        """Return the fault's number, error code and address."""


def read_file(cpu: StateCpu, number: int, file: VectorFile) -> bytes:
    """Return the registers of the CPU's file with this number, one behind the other."""
    data = bytes(cpu.vectors()[number])
    return b"".join(data[piece] for piece in file.places(len(data)))


def write_file(cpu: StateCpu, number: int, file: VectorFile, registers: bytes) -> None:
    """Set the registers of a file; what lies between them stays."""
    run = cpu.vectors()[number]
    data = bytearray(bytes(run))
    for piece, start in zip(file.places(len(data)), range(0, len(registers), file.size), strict=True):
        data[piece] = registers[start : start + file.size]
    run[:] = bytes(data)
