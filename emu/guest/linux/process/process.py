"""Processes and threads, and what threads share or have for themselves.

Source: Linux kernel/fork.c (ksys_unshare, copy_files, copy_fs), fs/exec.c (unshare_files).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum
from typing import Any, Final, TypeAlias

from emu.guest import processes
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.fdtable import Descriptors
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.mm.address_space import Area, Space
from emu.guest.linux.process.cred import Capability, Credentials
from emu.guest.linux.process.rlimit import Limits
from emu.guest.linux.sched.deadline import Budget, Reservation
from emu.guest.linux.sched.thread_segments import Segments
from emu.guest.observer import Observer
from emu.isa.linux_signals import DEFAULT, LAST, NO_TRAP, SignalInfo, Trap


@dataclass(slots=True)
class Wait:
    """The wait of a blocked thread: for a condition or a time, whichever comes first."""

    ready: Callable[[], bool] = lambda: False
    deadline: int | None = None
    """Virtual nanoseconds; None: forever."""
    host: bool = False
    """Whether the condition depends on the host's input."""
    uninterruptible: bool = False
    """Whether signals have to wait too."""
    restarted: bool = False
    """Whether the system call is made again after a handler, whatever SA_RESTART says."""
    key: object | None = None
    """The object whose change can make the condition true (`Blocked.changed`); None: any."""


# The number of the process that was there before all others.
INIT: Final = 1
# The key of waits that only a signal or the time ends.
NOTHING: Final = object()


# A system call that may block: yields what it waits for, is told whether the condition came true (or the time passed),
# and returns its result.
SystemCall = Generator[Wait, bool, int]


class Waiter:
    """A thread that waits for a futex, the last in `queue`."""

    __slots__ = ("bits", "queue", "woken")

    def __init__(self, bits: int, queue: list[Waiter]) -> None:
        self.bits = bits
        self.woken = False
        self.join(queue)

    def join(self, queue: list[Waiter]) -> None:
        """Wait here from now on."""
        self.queue = queue
        queue.append(self)


class InterruptedBySignalError(Exception):
    """Thrown into a blocked system call when a signal is to be delivered."""


class Life(Enum):
    """The state of a thread."""

    RUNNABLE = "R"
    BLOCKED = "S"
    STOPPED = "T"
    DEAD = "Z"


@dataclass(slots=True)
class Action:
    """The action of a process for a signal (struct sigaction)."""

    handler: int = DEFAULT
    flags: int = 0
    restorer: int = 0
    mask: int = 0


@dataclass(slots=True)
class Signals:
    """The actions of a process, shared by those made with CLONE_SIGHAND."""

    actions: list[Action] = field(default_factory=lambda: [Action() for _ in range(LAST + 1)])

    def copy(self) -> Signals:
        """Return the same actions, apart."""
        return Signals([Action(a.handler, a.flags, a.restorer, a.mask) for a in self.actions])


@dataclass(slots=True)
class Surroundings:
    """Root, working directory and umask (fs_struct)."""

    root: Directory
    directory: Directory
    umask: int = 0o022

    def copy(self) -> Surroundings:
        """Return the same, apart."""
        return Surroundings(self.root, self.directory, self.umask)


@dataclass(slots=True)
class AlternateStack:
    """The alternate signal stack (sigaltstack)."""

    address: int = 0
    flags: int = 2  # SS_DISABLE
    size: int = 0


@dataclass(eq=False)
class Process:
    """A process: what its threads share."""

    pid: int
    parent: Process | None
    space: Space
    files: Descriptors
    surroundings: Surroundings
    signals: Signals
    group: int
    session: int
    name: str = ""
    """The value of execname: 15 bytes at most."""
    executable: RegularFile | None = None
    path: str = ""
    """Path of the executable."""
    entry: int = 0
    """The entry of the executable itself (AT_ENTRY)."""
    arguments: tuple[bytes, ...] = ()
    environment: tuple[bytes, ...] = ()
    threads: list[Thread] = field(default_factory=list)
    children: list[Process] = field(default_factory=list)
    pending: deque[SignalInfo] = field(default_factory=deque)
    status: int | None = None
    """The status that wait reports after the end of the process; None: it has not ended."""
    reaped: bool = False
    stopped_by: int = 0
    reported_stop: bool = True
    continued: bool = False
    exit_signal: int = 17  # SIGCHLD
    frames: dict[int, Any] = field(default_factory=dict)
    """Registers that a signal's frame does not hold, by the address of the frame."""
    executed: bool = False
    """Whether it has called execve (setpgid looks)."""
    ran: int = 0
    """Instructions its threads have executed."""
    auxiliary: bytes = b""
    """The auxiliary vector (/proc/PID/auxv)."""
    start_time: int = 0
    limits: Limits = field(default_factory=Limits)
    most_pages: int = 0
    """The most pages it has had in memory at one time, as `count_pages` has seen it."""
    children_ran: int = 0
    """Instructions of the children it has waited for, and of theirs."""
    children_pages: int = 0
    """The most pages that one of them has had."""
    reads: int = 0
    """System calls that have read, and the bytes they have."""
    bytes_read: int = 0
    writes: int = 0
    """System calls that have written, and the bytes they have."""
    bytes_written: int = 0
    credentials: Credentials = field(default_factory=Credentials)
    dumpable: int = 1
    """PR_SET_DUMPABLE; it is only remembered, because there are no core files."""
    is_reaper: bool = False
    """Whether it becomes the parent of orphans below it (PR_SET_CHILD_SUBREAPER)."""
    common: tuple[Descriptors, Surroundings] | None = None
    """The descriptors and surroundings of those threads that have none of their own; None: all
    threads share `files` and `surroundings`.  Otherwise these two are those of the thread that
    runs."""

    def divide(self) -> None:
        """Allow threads descriptors and surroundings of their own from now on."""
        if self.common is None:
            self.common = (self.files, self.surroundings)

    def show(self, thread: Thread | None) -> None:
        """Let `files` and `surroundings` be those of one thread; None: those of all others."""
        if self.common is not None:
            files, surroundings = self.common
            self.files = thread.files or files if thread is not None else files
            self.surroundings = thread.surroundings or surroundings if thread is not None else surroundings

    @property
    def tables(self) -> list[Descriptors]:
        """All its tables of descriptors."""
        tables = [self.files if self.common is None else self.common[0]]
        return tables + [thread.files for thread in self.threads if thread.files is not None]

    @property
    def is_init(self) -> bool:
        """Whether it is the process that no program of the guest can change."""
        return self.pid == INIT

    def may_be_traced(self, credentials: Credentials) -> bool:
        """Return whether these credentials allow to look at its memory (ptrace_may_access)."""
        same = credentials.user.real == self.credentials.user.real
        return not self.is_init and (same or credentials.can(Capability.SYS_PTRACE))

    def runs(self, file: RegularFile) -> None:
        """Note which file it runs from now on."""
        file.executions += 1
        self.leaves_executable()
        self.executable = file

    def leaves_executable(self) -> None:
        """Let the file that it runs be written, as far as it is concerned."""
        if self.executable is not None:
            self.executable.executions -= 1

    @property
    def faults(self) -> int:
        """Pages that were made or looked up for it."""
        return self.space.faults

    def count_pages(self) -> None:
        """Note how many pages it has in memory."""
        self.most_pages = max(self.most_pages, self.space.most_resident)

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""
        return self.status is None


class Policy(IntEnum):
    """The scheduling policy of a thread (include/uapi/linux/sched.h)."""

    OTHER = 0
    FIFO = 1
    RR = 2
    BATCH = 3
    IDLE = 5
    DEADLINE = 6


# The policies whose threads precede all others, by their priority.
REAL_TIME: Final = frozenset({Policy.FIFO, Policy.RR})


@dataclass(slots=True)
class Scheduling:
    """The scheduling parameters of a thread."""

    policy: Policy = Policy.OTHER
    priority: int = 0
    """1 to 99 with a real-time policy."""
    nice: int = 0
    reset_on_fork: bool = False
    reservation: Reservation | None = None
    """Its parameters with SCHED_DEADLINE; None: it has another policy."""

    def copy(self) -> Scheduling:
        """Return what a child gets (sched_fork)."""
        if not self.reset_on_fork:
            return replace(self)
        return Scheduling(nice=0 if self.policy in {*REAL_TIME, Policy.DEADLINE} else max(self.nice, 0))


@dataclass(eq=False)
class Thread:
    """A thread; the first of a process has the process's number."""

    tid: int
    process: Process
    context: Any = None
    """Its registers while another one runs (a Unicorn context)."""
    life: Life = Life.RUNNABLE
    mask: int = 0
    pending: deque[SignalInfo] = field(default_factory=deque)
    call: SystemCall | None = None
    """The system call it is blocked in."""
    call_name: str = ""
    errno: int = 0
    """The error of its last system call; 0: the call succeeded."""
    wait: Wait | None = None
    restart: tuple[int, int] | None = None
    """(number, first argument) of the current system call, which may have to be restarted."""
    clear_tid: int = 0
    robust_list: int = 0
    scheduling: Scheduling = field(default_factory=Scheduling)
    budget: Budget | None = None
    """Its time in the period under way (SCHED_DEADLINE); None: it has no deadlines."""
    lent_priority: int = 0
    """The highest priority of the threads that wait for a lock that it has."""
    stack: AlternateStack = field(default_factory=AlternateStack)
    trap: Trap = NO_TRAP
    """Its last fault, which the frames of signals tell."""
    segments: Segments = field(default_factory=Segments)
    """Its own entries of the descriptor table, in i386 programs."""
    saved_mask: int | None = None
    """The mask to go back to after the handler, where a system call had changed it (sigsuspend)."""
    vfork_done: bool = False
    parent_death_signal: int = 0
    """Sent to its process when the parent ends (PR_SET_PDEATHSIG); 0: none."""
    ran: int = 0
    """Instructions it has executed."""
    name: str = ""
    cpu: int = 0
    """The CPU on which it runs, waits for its turn, or ran last."""
    affinity: int = -1
    """The CPUs on which it may run, as a mask."""
    io_priority: int = 0
    """Its class and level of input and output (ioprio_set); 0: none."""
    personality: int = 0
    """The behaviour of other systems that it has asked for (personality)."""
    files: Descriptors | None = None
    """Its own descriptors; None: its process's."""
    surroundings: Surroundings | None = None
    """Its own root and working directory; None: its process's."""
    not_before: int = 0
    """The virtual time at which it has become ready, with several CPUs."""

    @property
    def priority(self) -> int:
        """Its real-time priority, its own or lent; 0: it has none."""
        return max(self.scheduling.priority, self.lent_priority)

    @property
    def ranked(self) -> bool:
        """Whether it does not take turns with all others."""
        return self.budget is not None or self.priority > 0

    @property
    def is_leader(self) -> bool:
        """Whether it is the first thread of its process."""
        return self.tid == self.process.pid


# Hears of the processes of the Linux guest.
LinuxObserver: TypeAlias = Observer[Process, Thread, Area]


def own(process: processes.Process) -> Process:
    """Return a process of this guest.  Raises TypeError for another guest's."""
    if not isinstance(process, Process):
        raise TypeError(f"process {process.pid} is not one of the Linux guest")
    return process


def inherit(maker: Thread, thread: Thread, *, files: bool, surroundings: bool) -> None:
    """Give a new thread the descriptors and surroundings of its maker: shared, or copied."""
    process = thread.process
    if not (files and surroundings):
        process.divide()
    if not files:
        thread.files = process.files.copy()
    elif maker.files is not None:
        thread.files = maker.files.share()
    thread.surroundings = maker.surroundings if surroundings else process.surroundings.copy()


def unshare_files(thread: Thread) -> None:
    """Give a thread descriptors that no other thread and no other process has."""
    process = thread.process
    if thread.files is not None:
        thread.files = thread.files.unshared()
    elif len(process.threads) > 1:
        process.divide()
        thread.files = process.files.copy()
    else:
        process.files = process.files.unshared()
        if process.common is not None:
            process.common = (process.files, process.common[1])
    process.show(thread)


def unshare_surroundings(thread: Thread) -> None:
    """Give a thread a root and a working directory of its own."""
    process = thread.process
    process.divide()
    thread.surroundings = process.surroundings.copy()
    process.show(thread)


def unshare_for_exec(process: Process, thread: Thread) -> None:
    """Give a process the descriptors and surroundings of its last thread, for a new program."""
    if process.common is not None:
        common, _ = process.common
        process.show(thread)
        if thread.files is not None:
            common.leave()
        process.common = thread.files = thread.surroundings = None
    process.files = process.files.unshared()
