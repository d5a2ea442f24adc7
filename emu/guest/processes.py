"""The interface of a system with programs, for the providers of user probes.

A system (`Processes`) has processes and threads, gives access to the CPU while one of them is in a
trap, and reports their events to its observers.  The Linux guest and the kernel guest are such
systems.  Each accepts only its own processes and threads, and raises TypeError for others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from emu.displaced.frame import Frame
from emu.guest.observer import Observer
from emu.probe.execute_plan import Cpu

if TYPE_CHECKING:
    from emu.elf.symbols import Symbol
    from emu.engine.engine import Engine
    from emu.engine.memory.access import Access
    from emu.guest.objects import LoadedObject
    from emu.isa.base import Isa
    from emu.probe.trap import TrapHandler

# The answer of a handler of user breakpoints if the displaced instruction is done, or is being executed elsewhere.
EXECUTED = 1


class Process(Protocol):
    """A process, as providers use it."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def parent(self) -> Process | None:
        """The process that created it."""

    @property
    def alive(self) -> bool:
        """Whether it is alive, that is, has not ended."""

    @property
    def threads(self) -> Sequence[Thread]:
        """Its known threads."""

    @property
    def space(self) -> object:
        """Its address space: equal for processes that share one."""

    @property
    def path(self) -> str:
        """Path of the program."""

    @property
    def executable(self) -> object:
        """The program's file: equal to the `file` of its `LoadedObject`."""


class Thread(Protocol):
    """A thread; it has one object for its whole life."""

    @property
    def process(self) -> Process:
        """The process of the thread."""

    @property
    def call_name(self) -> str:
        """The system call that it executes, "" if that is not known."""


class Area(Protocol):
    """A mapping of an address space."""

    @property
    def start(self) -> int:
        """Its first address."""

    @property
    def end(self) -> int:
        """The address after its last byte."""

    @property
    def access(self) -> Access:
        """The permitted accesses to its memory."""

    @property
    def backing(self) -> object:
        """The file that it maps, None for memory without one."""

    @property
    def offset(self) -> int:
        """The offset in the file of its first byte."""


# An observer of the processes of any guest.
ProcessObserver: TypeAlias = Observer[Process, Thread, Area]


class TrappedCpu(Cpu, Protocol):
    """The registers and memory of a thread in a trap: an `Engine`, or an object with its methods."""

    @property
    def pc(self) -> int:
        """The program counter."""

    @pc.setter
    def pc(self, value: int) -> None: ...

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""

    def discount(self, instructions: int, executed: int = 0) -> None:
        """Subtract instructions from the count (`emu.engine.time.counter.Counter.discount`)."""


class Code(Protocol):
    """The memory of one address space, whichever process runs: an `emu.probe.patcher.CodeMemory`."""

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""

    def write(self, address: int, data: bytes) -> None:
        """Write data, whatever the access rights are.  Raises `BadAddressError`."""

    def write_code(self, address: int, data: bytes) -> None:
        """Write code, whatever the access rights are, only in this address space.

        Raises `BadAddressError`.
        """


class Slots(Protocol):
    """Slots in an address space where displaced instructions run."""

    def ready(self) -> bool:
        """Return whether `take` may be called.

        False: the system is making room, and the caller must call this again.
        """

    def take(self) -> int:
        """Return the address of a free slot.  Raises `BadAddressError` if there is no room."""

    def give_back(self, address: int) -> None:
        """Free a slot."""

    def fill(self, address: int, code: bytes) -> None:
        """Write the code of a slot."""


class Processes(Protocol):
    """A system with processes: the Linux guest's `Kernel`, the kernel guest's `Userland`."""

    isa: Isa
    engine: Engine
    traps: TrapHandler
    """The handlers of user breakpoints."""
    exceptions: list[Callable[[int, int], bool]]
    """Called with (number, pc) for each exception except breakpoints and page faults: each returns
    whether it has handled the exception."""

    @property
    def cpu(self) -> TrappedCpu:
        """The registers and memory of the thread in the trap."""

    @property
    def native(self) -> bool:
        """Whether the trapped thread is on the CPU: then machine code can execute a plan."""

    @property
    def frame(self) -> Frame:
        """The registers and memory of the thread in the trap, as a frame."""

    @property
    def current(self) -> Thread | None:
        """The thread that runs."""

    def process(self, pid: int) -> Process | None:
        """Return a process that is alive or has just ended."""

    def alive(self) -> Iterable[Process]:
        """Return the processes that run a program."""
        ...

    def watch(self, watcher: ProcessObserver) -> None:
        """Report events to an observer from now on."""

    def code(self, process: Process) -> Code:
        """Return the memory of a process."""

    def slots(self, process: Process, size: int, name: str) -> Slots:
        """Return the out-of-line slots of a process, of `size` bytes each."""

    def drop_slots(self, slots: Slots, child: Process) -> None:
        """Remove slots from a child, which has a copy of them after a fork."""

    def is_shared(self, process: Process) -> bool:
        """Return whether another process has the same address space (vfork)."""

    def raise_bad_address(self, address: int) -> object:
        """Make the current thread fault as if it had accessed an address; call it from a trap."""

    def set_pc(self, thread: Thread, pc: int) -> None:
        """Set the pc of a thread that does not run."""


class Objects(Protocol):
    """The ELF files that processes have mapped."""

    def of(self, process: Process) -> Sequence[LoadedObject]:
        """Return the objects of a process: the program first, then by address."""

    def loaded(self, process: Process, area: Area) -> LoadedObject | None:
        """Return the object whose code is in an area of a process."""

    def at(self, process: Process, address: int) -> LoadedObject | None:
        """Return the object that contains an address of a process."""

    def chosen(self, process: Process, loaded: LoadedObject, symbol: Symbol) -> Symbol | None:
        """Return the choice of an indirect function's resolver."""
