"""The interface of a system with programs, for the providers of user probes.

A system (`Processes`) has processes and threads, shows the CPU while one of them is in a trap, and
reports their events to its watchers.  The Linux guest and the kernel guest are such systems. Each
takes back only processes and threads of its own, and raises TypeError for others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

from emu.frame import Frame
from emu.guest.observer import Observer
from emu.plan_execution import Cpu

if TYPE_CHECKING:
    from emu.elf_symbols import Symbol
    from emu.engine.access import Access
    from emu.engine.engine import Engine
    from emu.guest.objects import LoadedObject
    from emu.isa.base import Isa
    from emu.trap import TrapHandler

# What a handler of user breakpoints answers when the displaced instruction is done, or under way elsewhere.
CARRIED_OUT = 1


class Process(Protocol):
    """A process, as far as probes are concerned."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def parent(self) -> Process | None:
        """Who made it."""

    @property
    def alive(self) -> bool:
        """Whether it has not ended."""

    @property
    def threads(self) -> Sequence[Thread]:
        """Those of its threads that have been seen."""

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
    """A thread; one object for all its life."""

    @property
    def process(self) -> Process:
        """Whose it is."""

    @property
    def call_name(self) -> str:
        """The system call it is in, "" if that is not known."""


class Area(Protocol):
    """A mapping of an address space."""

    @property
    def start(self) -> int:
        """Its first address."""

    @property
    def end(self) -> int:
        """The address behind it."""

    @property
    def access(self) -> Access:
        """What its memory may be used for."""

    @property
    def backing(self) -> object:
        """The file it shows, None for memory without one."""


# Hears of the processes of any guest.
ProcessObserver: TypeAlias = Observer[Process, Thread, Area]


class TrappedCpu(Cpu, Protocol):
    """The registers and memory of a thread in a trap: an `Engine`, or what looks like one."""

    @property
    def pc(self) -> int:
        """The program counter."""

    @pc.setter
    def pc(self, value: int) -> None: ...

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""

    def discount(self, instructions: int) -> None:
        """Take instructions off the count."""


class Code(Protocol):
    """The memory of one address space, whichever process runs; also an `emu.patcher.CodeMemory`."""

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""

    def write(self, address: int, data: bytes) -> None:
        """Write data, whatever the rights there.  Raises `BadAddressError`."""

    def write_code(self, address: int, data: bytes) -> None:
        """Write code, whatever the rights there, for this address space alone.

        Raises `BadAddressError`.
        """


class Slots(Protocol):
    """Places in an address space where displaced instructions run."""

    def ready(self) -> bool:
        """Return whether `take` is to be called.

        False: the system is making room, and the caller has to ask again.
        """

    def take(self) -> int:
        """Return the address of a free one.  Raises `BadAddressError` if there is no room."""

    def give_back(self, address: int) -> None:
        """Free one."""

    def fill(self, address: int, code: bytes) -> None:
        """Write what runs in one."""


class Processes(Protocol):
    """A system with processes: the Linux guest's `Kernel`, the kernel guest's `Userland`."""

    isa: Isa
    engine: Engine
    traps: TrapHandler
    """Asked about user breakpoints."""
    exceptions: list[Callable[[int, int], bool]]
    """Asked (number, pc) about each exception but breakpoints and page faults: whether it is
    theirs."""

    @property
    def cpu(self) -> TrappedCpu:
        """The registers and memory of the thread in the trap."""

    @property
    def native(self) -> bool:
        """Whether the CPU itself is in the trap, so that it can carry out a plan."""

    @property
    def frame(self) -> Frame:
        """The same as a frame."""

    @property
    def current(self) -> Thread | None:
        """The thread that runs."""

    def process(self, pid: int) -> Process | None:
        """Return a process that is alive, or has just ended."""

    def watch(self, watcher: ProcessObserver) -> None:
        """Tell an observer from now on."""

    def code(self, process: Process) -> Code:
        """Return the memory of a process."""

    def slots(self, process: Process, size: int, name: str) -> Slots:
        """Return the out-of-line slots of a process, of `size` bytes each."""

    def drop_slots(self, slots: Slots, child: Process) -> None:
        """Take slots out of a child that has got them by a fork."""

    def is_shared(self, process: Process) -> bool:
        """Return whether another process has the same address space (vfork)."""

    def raise_bad_address(self, address: int) -> object:
        """Make the current thread take the fault of its own access to an address; from a trap."""

    def set_pc(self, thread: Thread, pc: int) -> None:
        """Move a thread that does not run."""


class Objects(Protocol):
    """The ELF files that processes have mapped."""

    def of(self, process: Process) -> Sequence[LoadedObject]:
        """Return the objects of a process: the program first, then by address."""

    def loaded(self, area: Area) -> LoadedObject | None:
        """Return the object whose code an area is."""

    def at(self, process: Process, address: int) -> LoadedObject | None:
        """Return the object that holds an address of a process."""

    def chosen(self, process: Process, loaded: LoadedObject, symbol: Symbol) -> Symbol | None:
        """Return what the resolver of an indirect function has chosen."""
