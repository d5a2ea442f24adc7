"""The programs on a running Linux kernel, for providers: `emu.guest.processes.Processes`.

Processes are found in the kernel's list of tasks, their mappings by `areas`.  The symbols come from
the files of the initramfs, by their paths: a file that was made later has none here.  While a probe
of a program fires, `cpu` and `frame` are the registers that the kernel has saved (struct pt_regs).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol

from emu.displaced.frame import Frame
from emu.elf.file import ElfError, ElfKind
from emu.elf.image import Image
from emu.elf.source.inlined import SourceFrame
from emu.elf.symbols import Symbol
from emu.engine.memory.access import Access
from emu.guest import processes
from emu.guest.base import Location
from emu.guest.linux_kernel.areas import Area, Areas
from emu.guest.linux_kernel.program_cpu import ProgramCpu, ProgramFrame
from emu.guest.objects import LoadedObject, load_bias
from emu.guest.processes import ProcessObserver
from emu.guest.stack_walker import Memory, StackWalker
from emu.probe.trap import TrapHandler
from emu.support import cpio
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.engine.engine import Engine
    from emu.guest.linux_kernel.files.facts import KernelFacts
    from emu.guest.linux_kernel.machine.machine import LinuxKernelMachine
    from emu.guest.linux_kernel.tasks import Tasks
    from emu.isa.base import Isa

_WORD: Final = 8
# User stacks deeper than this are truncated.
_MOST_FRAMES: Final = 100
# More tasks than there are.
_MOST_TASKS: Final = 4096


class Kernel(Protocol):
    """The interface of the guest for `Programs`."""

    isa: Isa
    engine: Engine
    facts: KernelFacts
    machine: LinuxKernelMachine
    tasks: Tasks
    traps: TrapHandler

    def user_load(self, address: int, size: int) -> bytes:
        """Read memory of the current process.  Raises `BadAddressError`."""
        ...


class Process:
    """A process, by its number and its address space."""

    parent = None
    call_name = ""

    def __init__(self, pid: int, mm: int, path: str, executable: int) -> None:
        self.pid = pid
        self.space = mm
        """Address of its struct mm_struct."""
        self.path = path
        self.executable = executable
        """Address of the inode of its program."""
        self.alive = True
        self.threads: list[Thread] = []


class Thread:
    """A thread: here only the process matters."""

    call_name = ""

    def __init__(self, process: Process) -> None:
        self.process = process


class _Code:
    """The memory of a program; what is not present is read from its files.  It is never written."""

    def __init__(self, programs: Programs, process: Process) -> None:
        self._programs = programs
        self._process = process

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""
        found = self._programs.at(self._process, address)
        if found is not None:
            data = found.image.read(address - found.bias, size)
            if len(data) == size:
                return data
        raise BadAddressError(address)

    def write(self, address: int, data: bytes) -> None:
        """Refuse to write: the kernel itself writes its breakpoints.  Raises `BadAddressError`."""
        del data
        raise BadAddressError(address)

    write_code = write


class _HitFrame(ProgramFrame):
    """The registers of the current hit."""

    def __init__(self, programs: Programs) -> None:
        self._programs = programs

    @property
    def _cpu(self) -> ProgramCpu:
        return self._programs.cpu


class Programs:
    """The processes that have a program.  Implements `Processes` and `Objects`."""

    native = False

    def __init__(self, guest: Kernel) -> None:
        self._guest = guest
        self.isa = guest.isa
        self.engine = guest.engine
        self.traps = TrapHandler(guest.traps.core)
        self.exceptions: list[Callable[[int, int], bool]] = []
        self.observers: list[ProcessObserver] = []
        self._areas = Areas(guest.engine, guest.facts.btf)
        btf = guest.facts.btf
        self._tasks_at = btf.offset("task_struct", "tasks")
        self._images: dict[str, Image | None] = {}
        self._objects: dict[Process, tuple[LoadedObject, ...]] = {}
        """Kept after a process's end, for a stack may be printed then."""
        self._processes: dict[int, Process] = {}
        self._cpu: ProgramCpu | None = None
        self._stacks = StackWalker(self.isa, Memory(guest.user_load, self._here))

    # -- the CPU in a trap

    @property
    def cpu(self) -> ProgramCpu:
        """The registers that the kernel has saved.

        While machine code serves a hit, they are those to which the second argument of the kernel's
        call points.
        """
        if self._cpu is not None:
            return self._cpu
        registers = self.engine.read_register(self.isa.calling.arguments[1])
        return ProgramCpu(self.isa, self._guest.tasks.registers_at(registers), self._guest.user_load)

    @property
    def frame(self) -> ProgramFrame:
        """The registers of the interrupted program as a trap frame."""
        return ProgramFrame(self.cpu)

    @property
    def hit_frame(self) -> ProgramFrame:
        """The frame of whatever hit there is when it is used."""
        return _HitFrame(self)

    @contextmanager
    def trapped(self, registers: int) -> Iterator[None]:
        """Use the registers of a struct pt_regs inside a `with` statement."""
        before = self._cpu
        self._cpu = ProgramCpu(self.isa, self._guest.tasks.registers_at(registers), self._guest.user_load)
        core = self._guest.traps.core
        frame, core.trapframe = core.trapframe, self.frame
        try:
            yield
        finally:
            self._cpu, core.trapframe = before, frame

    # -- processes

    @property
    def current(self) -> Thread | None:
        """The current thread, None for a kernel thread."""
        tasks = self._guest.tasks
        task = tasks.current()
        process = self.of_task(task) if task else None
        return None if process is None else Thread(process)

    def process(self, pid: int) -> Process | None:
        """Return a process that runs a program."""
        task = next((task for task in self._all_tasks() if self._guest.tasks.pid(task) == pid), None)
        return None if task is None else self.of_task(task)

    def alive(self) -> list[Process]:
        """Return the processes that run a program."""
        return [process for process in map(self.of_task, self._all_tasks()) if process is not None]

    def _all_tasks(self) -> Iterator[int]:
        """Yield the addresses of the tasks of the kernel's list."""
        first = at = self._guest.facts.symbols.address("init_task") + self._tasks_at
        for _ in range(_MOST_TASKS):
            at = self.engine.load(at, _WORD)
            if at == first:
                return
            yield at - self._tasks_at

    def of_task(self, task: int) -> Process | None:
        """Return the process of a task, None for a kernel thread."""
        tasks = self._guest.tasks
        mm = tasks.word(task, "task_struct.mm")
        if not mm:
            return None
        pid = tasks.pid(task)
        known = self._processes.get(pid)
        if known is None or known.space != mm:
            if known is not None:
                known.alive = False
                self._objects.pop(known, None)
            path, inode = self._areas.program(mm), self._areas.executable(mm)
            known = self._processes[pid] = Process(pid, mm, path, inode)
        return known

    def watch(self, watcher: ProcessObserver) -> None:
        """Report events to an observer: a provider that watches the kernel does (`observers`)."""
        self.observers.append(watcher)

    def known(self, pid: int) -> Process | None:
        """Return a process as it was last seen, None if it was not."""
        return self._processes.get(pid)

    def area(self, vma: int) -> Area | None:
        """Return a mapping by the address of its struct vm_area_struct; None: it cannot be read."""
        try:
            return self._areas.area(vma)
        except BadAddressError:
            return None

    def code(self, process: processes.Process) -> _Code:
        """Return the memory of a process."""
        assert isinstance(process, Process)
        return _Code(self, process)

    def slots(self, process: processes.Process, size: int, name: str) -> processes.Slots:
        """Return the out-of-line slots: the kernel has its own, so there are none here."""
        del process, size, name
        return _NO_SLOTS

    def drop_slots(self, slots: processes.Slots, child: processes.Process) -> None:
        """Do nothing: there are no slots."""

    def is_shared(self, process: processes.Process) -> bool:
        """Return False: the kernel manages the breakpoints of shared memory."""
        del process
        return False

    def raise_bad_address(self, address: int) -> None:
        """Do nothing: instructions are executed by the kernel, which delivers their faults."""

    def set_pc(self, thread: processes.Thread, pc: int) -> None:
        """Do nothing: no thread is in a slot of ours."""

    # -- objects

    def areas(self, process: processes.Process) -> list[Area]:
        """Return the mappings of a process."""
        assert isinstance(process, Process)
        return self._areas.of(process.space)

    def of(self, process: processes.Process) -> tuple[LoadedObject, ...]:
        """Return the objects of a process: the program first, then by address."""
        assert isinstance(process, Process)
        found: dict[object, LoadedObject] = {}
        for area in self.areas(process):
            loaded = self.loaded(process, area)
            if loaded is not None:
                found.setdefault((loaded.file, loaded.bias), loaded)
        objects = tuple(sorted(found.values(), key=lambda one: (one.file != process.executable, one.bias)))
        self._objects[process] = objects
        return objects

    def loaded(self, process: processes.Process, area: processes.Area) -> LoadedObject | None:
        """Return the object whose code is in an area."""
        if not isinstance(area, Area) or area.backing is None or Access.EXECUTE not in area.access:
            return None
        image = self.file(area.path)
        if image is None:
            return None
        bias = load_bias(image, area, lambda: [one for one in self.areas(process) if one.backing == area.backing])
        return None if bias is None else LoadedObject(area.path, image, bias, area.backing)

    def at(self, process: processes.Process, address: int) -> LoadedObject | None:
        """Return the object that contains an address of a process."""
        assert isinstance(process, Process)
        known = self._objects.get(process) or self.of(process)
        return next((one for one in known if one.holds(address)), None)

    def chosen(self, process: processes.Process, loaded: LoadedObject, symbol: Symbol) -> Symbol | None:
        """Return None: the choice of a resolver is not looked for."""
        del process, loaded, symbol
        return None

    def file(self, path: str) -> Image | None:
        """Return a file of the initramfs as ELF; None: it is not there, or not ELF."""
        if path not in self._images:
            content = cpio.find(self._guest.machine.parts.initramfs, path.lstrip("/"))
            image = None
            if content is not None:
                try:
                    image = Image(path, content=content)
                except ElfError:
                    image = None
            self._images[path] = image if image is not None and image.kind is not ElfKind.RELOCATABLE else None
        return self._images[path]

    # -- names

    def stack(self, frame: Frame) -> list[int]:
        """Return the pcs of the current process's stack, innermost first."""
        return self._stacks.pcs(frame, _MOST_FRAMES)

    def _here(self, address: int) -> LoadedObject | None:
        """Return the object at an address of the current process, whose mappings may have changed."""
        thread = self.current
        if thread is None:
            return None
        known = self._objects.get(thread.process, ())
        found = next((one for one in known if one.holds(address)), None)
        return found or next((one for one in self.of(thread.process) if one.holds(address)), None)

    def locate(self, address: int, pid: int | None) -> Location | None:
        """Name an address of a process, None for the current one; None if no object holds it."""
        found = self._holder(address, pid)
        return None if found is None else found.locate(address)

    def source(self, address: int, pid: int | None) -> Sequence[SourceFrame]:
        """Return the functions and lines of an instruction of a process; empty: not known."""
        found = self._holder(address, pid)
        return () if found is None else found.source(address)

    def _holder(self, address: int, pid: int | None) -> LoadedObject | None:
        """Return the object that holds an address of a process."""
        if pid is not None:
            process = self._processes.get(pid)
        else:
            process = None if self.current is None else self.current.process
        known = () if process is None else self._objects.get(process, ())
        return next((one for one in known if one.holds(address)), None)


class _NoSlots:
    """Implements `emu.guest.processes.Slots`; it has none."""

    def ready(self) -> bool:
        """Return True: there is nothing to wait for."""
        return True

    def take(self) -> int:
        """Raise `BadAddressError`."""
        raise BadAddressError(0)

    def give_back(self, address: int) -> None:
        """Do nothing."""

    def fill(self, address: int, code: bytes) -> None:
        """Do nothing."""


_NO_SLOTS: Final = _NoSlots()
