"""The contract of an ISA's Linux: the differences between Linux on different ISAs.

`emu/isa/<isa>/linux.py` gives one `LinuxAbi`, which is `Isa.linux`: the numbers of system calls,
structures in memory, the frame of a signal, the signals of exceptions, and the registers of a
program when it starts.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from emu.isa.linux_signals import (
    BUS_ADRALN,
    ILL_ILLOPC,
    SI_KERNEL,
    SIGINFO_SIZE,
    TRAP_BRKPT,
    FrameState,
    PageFaultTrap,
    Signal,
    Trap,
)
from emu.isa.unicorn_model import ModelledCpu
from emu.support.immutable import immutable

BLOCK: Final = 4096


class FileStatus(Protocol):
    """The contents of struct stat.  Times are nanoseconds since 1970."""

    number: int
    links: int
    uid: int
    gid: int
    device: int
    accessed: int
    modified: int
    changed: int

    @property
    def mode(self) -> int:
        """Kind and permissions (st_mode)."""

    @property
    def size(self) -> int:
        """Bytes (st_size)."""

    @property
    def allocated(self) -> int:
        """Bytes that are allocated (st_blocks * 512)."""


class StoppedCpu(Protocol):
    """The CPU for an instruction that an exception handler executes (`emu.engine.engine`)."""

    pc: int

    def read(self, address: int, size: int) -> bytes:
        """Return memory.  Raises `BadAddressError`."""

    def read_register(self, name: str) -> int:
        """Return a register."""

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""

    def discount(self, instructions: int) -> None:
        """Subtract instructions from the count."""


# Returns the base of a segment by the number of its entry in the descriptor table; None: it is not used.
Bases = Callable[[int], int | None]
# No exception follows an instruction that was executed.
NOTHING_FOLLOWS: Final = -1


class Fault(NamedTuple):
    """The signal that an exception becomes."""

    signal: Signal
    code: int
    has_address: bool = True
    """Whether si_addr tells the address; else it is 0."""


# The faults that most ISAs have.
GENERAL_PROTECTION: Final = Fault(Signal.SIGSEGV, SI_KERNEL, has_address=False)
ILLEGAL: Final = Fault(Signal.SIGILL, ILL_ILLOPC)
MISALIGNED: Final = Fault(Signal.SIGBUS, BUS_ADRALN)
BREAKPOINT: Final = Fault(Signal.SIGTRAP, TRAP_BRKPT)


class SignalFrame(NamedTuple):
    """The frame of a signal: the offsets of its fields, in bytes from its start."""

    size: int
    siginfo: int
    ucontext: int
    stack: int
    """uc_stack: address, flags and size of the alternate stack."""
    mask: int
    """uc_sigmask."""
    registers: Mapping[str, int]
    """Register -> where it is saved."""
    return_address: int | None
    """Offset of the address of the restorer; None: it is in the link register."""
    state: FrameState
    """The floating-point and vector registers."""
    arguments: tuple[int, ...] = ()
    """Offsets of the handler's arguments, if they are not in registers."""
    record: int | None = None
    """Offset of the frame record for unwinders (frame pointer, link register); None: there is none."""
    trap: Mapping[str, int] = MappingProxyType({})
    """Offsets of the fields of the thread's last fault (`Trap`), those that are there."""
    words: Mapping[int, int] = MappingProxyType({})
    """Offsets of words that are always the same."""
    shown: tuple[tuple[str, int, int], ...] = ()
    """Registers that are saved and not loaded again: name, offset, bytes."""
    on_entry: Mapping[str, int] = MappingProxyType({})
    """Registers that the kernel sets when it enters a handler, beside the arguments."""
    cleared: int = 0
    """The bits of the flags that are clear in a handler."""


@immutable
class OpenFlags:
    """The flags of open that differ between ISAs (fcntl.h)."""

    directory: int
    no_follow: int
    direct: int
    large_file: int


class PersonalityRules(NamedTuple):
    """What is particular to one ISA about personality().  Source: arch/*/include/asm/elf.h."""

    machine: str
    """The name of the machine that uname reports with PER_LINUX32 (COMPAT_UTS_MACHINE)."""
    cleared: int
    """The bits that are cleared when a program is started (SET_PERSONALITY)."""
    keeps_linux32: bool = False
    """Whether PER_LINUX32 stays, with all other bits, when a program is started."""
    has_linux32: bool = True
    """Whether there can be PER_LINUX32: the CPU would have to run 32-bit programs."""


# The bits of a personality: for memory that can be executed because it can be read; of the execution domain.
READ_IMPLIES_EXEC: Final = 0x0040_0000
PERSONALITY_DOMAIN: Final = 0xFF


@immutable
class LinuxAbi:
    """Linux on one ISA."""

    calls: Mapping[int, str]
    """System call by number."""
    machine: str
    """The name of the machine in the result of uname."""
    personality: PersonalityRules
    elf_machine: int
    """e_machine of its programs."""
    platform: str
    """AT_PLATFORM; "" for none."""
    hwcap: int
    """AT_HWCAP: features of the CPU, all of which the emulated one has."""
    highest: int
    """End of user addresses: the stack is below it."""
    executable_base: int
    """The address of a position-independent program (ELF_ET_DYN_BASE, without randomisation)."""
    call_number: str
    """Register of the system call's number."""
    call_number_mask: int
    """The bits of that register which the kernel looks at."""
    call_result: str
    system_call: bytes
    """The instruction that makes a system call; a call is restarted by moving the pc back by its
    length."""
    call_overwrites: Mapping[str, str]
    """Registers that this instruction overwrites, each with the register whose value it gets."""
    tls: str
    """Register of the thread pointer."""
    clone_tls_first: bool
    """Whether clone() takes the thread pointer before the child's tid address."""
    open_flags: OpenFlags
    stat: Callable[[FileStatus], bytes]
    """Returns the struct stat of a file."""
    frame: SignalFrame
    page_fault: PageFaultTrap | None = field(default=None, kw_only=True)
    """Returns what frames tell after a page fault; None: nothing."""
    exception: Callable[[int, Trap], Trap] | None = field(default=None, kw_only=True)
    """(number, the last fault before) -> what frames tell after another exception; None: nothing."""
    restorer: bytes
    """Code that returns from a signal; b"": programs have their own."""
    trampolines: tuple[bytes, ...]
    """The starts of code that returns from a signal, as kernels and C libraries write it."""
    action_has_restorer: bool
    """Whether struct sigaction has a field for the restorer, used or not."""
    red_zone: int
    """Bytes below the stack pointer that a signal's frame must leave alone."""
    breakpoint: Fault = field(default=BREAKPOINT, kw_only=True)
    """The signal for a breakpoint of the program's own."""
    faults: Mapping[int, Fault]
    """Signals by the numbers that Unicorn, like QEMU, gives to exceptions (target/*/cpu.h); all
    other exceptions are a general protection fault."""
    probe_registers: Mapping[str, str]
    """The name of a register in a fetch argument of an event (arch/*/kernel/ptrace.c) -> its name
    in `Isa.registers`."""
    initial_registers: Mapping[str, int] = field(default_factory=dict)
    """Registers that are not 0 when a program starts, except for the pc and the stack pointer."""
    packed_epoll_event: bool = False
    """Whether the data of a struct epoll_event directly follows its events."""
    spaced_semaphore_times: bool = False
    """Whether an unused word follows each time of a struct semid64_ds."""
    hwcap2: int = 0
    """AT_HWCAP2."""
    word: int = 8
    """Bytes of a long, a pointer, a size_t."""
    prepare: Callable[[ModelledCpu], None] = lambda _cpu: None
    """Does what a kernel does before it lets programs run, after `initial_registers` are set."""
    segments: Mapping[str, str] = field(default_factory=dict)
    """Registers with the number of a segment, and those with its base, of which one is `tls`: a
    thread pointer is then given as a struct user_desc."""
    execute: Callable[[StoppedCpu, Bases, int, int], int | None] | None = None
    """(CPU, bases of the thread's segments, exception, pc) -> the exception that follows, or
    `NOTHING_FOLLOWS`, if it has executed the instruction at pc, None if not; for instructions
    that a program may use under Linux, but that the emulated CPU refuses. None: there is no such
    instruction."""
    raised: Callable[[ModelledCpu, StoppedCpu, int, int], tuple[int, int]] | None = None
    """(CPU, its registers and memory, exception, pc) -> the exception and the pc that a real CPU
    would report. None: Unicorn reports the same.  Raises `BadAddressError`."""
    accesses: Callable[[Callable[[str], int], bytes], Iterator[int]] | None = None
    """(value of a register by name, code) -> the addresses that the instruction accesses; None: the
    disassembler's operands are used."""
    operand_names: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    """The disassembler's name of a register in an address -> its name in `Isa.registers`, and the
    mask of its significant bits; only for registers whose names differ."""


def times(file: FileStatus) -> tuple[int, ...]:
    """Return access, modification and change time, each as seconds and nanoseconds."""
    return tuple(part for time in (file.accessed, file.modified, file.changed) for part in divmod(time, 1_000_000_000))


def blocks(file: FileStatus) -> int:
    """Return st_blocks: units of 512 bytes, in whole blocks."""
    return -(-file.allocated // BLOCK) * (BLOCK // 512)


_GENERIC_STAT: Final = struct.Struct("<QQIIIIQQqiiqqqqqqqII")


def generic_stat(file: FileStatus) -> bytes:
    """Return struct stat of asm-generic (include/uapi/asm-generic/stat.h)."""
    return _GENERIC_STAT.pack(
        1, file.number, file.mode, file.links, file.uid, file.gid, file.device, 0,
        file.size, BLOCK, 0, blocks(file), *times(file), 0, 0,
    )  # fmt: skip


def generic_frame(
    registers: Mapping[str, int], size: int, record: int | None, state: FrameState, trap: Mapping[str, int]
) -> SignalFrame:
    """Return the frame layout that newer ISAs share (struct rt_sigframe).

    The siginfo comes first, then the ucontext with the registers at offset 176, from which the
    places of `registers`, `state` and `trap` count.
    """
    ucontext = SIGINFO_SIZE
    registers_at = ucontext + 176
    return SignalFrame(
        size=size,
        siginfo=0,
        ucontext=ucontext,
        stack=ucontext + 16,
        mask=ucontext + 40,
        registers={name: registers_at + offset for name, offset in registers.items()},
        return_address=None,
        record=record,
        trap={name: registers_at + offset for name, offset in trap.items()},
        state=replace(state, at=registers_at + (state.at or 0)),
    )
