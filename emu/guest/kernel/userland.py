"""The user programs of the kernel guest, as whoever probes them sees them: `emu.guest.processes.Processes`.

Processes and threads are the guest kernel's; here they are found by their addresses, and the kernel
tells of their forks, execs and ends by its gates (dtrace_fasttrap_fork and its kin).  What is to be
written into a process is written between two runs: a gate or a trap that wants it has the run end
first (`KernelGuest.soon`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Final

from emu.elf import ElfError, ElfKind, Image
from emu.engine.access import Access
from emu.engine.pages import PAGE
from emu.engine.state import DELIVER, HANDLED
from emu.frame import Frame
from emu.guest.base import BadAddressError, Location
from emu.guest.kernel.saved_cpu import SavedCpu, UserCpu
from emu.guest.kernel.user_memory import Area, File, Space, UserMemory
from emu.guest.objects import LoadedObject
from emu.guest.observer import Observer
from emu.guest.processes import CARRIED_OUT
from emu.trap import TrapHandler

if TYPE_CHECKING:
    from emu.elf import Symbol
    from emu.guest.kernel.guest import KernelGuest

_ZOMBIE: Final = 2
_DOF_HELPER: Final = struct.Struct("<64sQQii")
_DEEPEST: Final = 512


class Thread:
    """A thread (struct thread)."""

    call_name = ""

    def __init__(self, address: int, process: Process) -> None:
        self.address = address
        self.process = process


class Process:
    """A process (struct proc)."""

    def __init__(self, userland: Userland, address: int, pid: int) -> None:
        self._userland = userland
        self.address = address
        self.pid = pid
        self.alive = True
        self.threads: list[Thread] = []

    @property
    def parent(self) -> Process | None:
        """Who made it."""
        return self._userland.process_at(self._userland.word(self.address, "P_PPTR"))

    @property
    def space(self) -> Space:
        """Its address space."""
        return Space(self._userland.word(self.address, "P_VMSPACE"))

    @property
    def executable(self) -> File | None:
        """The program's file."""
        vnode = self._userland.word(self.address, "P_TEXTVP")
        return self._userland.memory.file(vnode) if vnode else None

    @property
    def path(self) -> str:
        """Path of the program."""
        vnode = self._userland.word(self.address, "P_TEXTVP")
        return self._userland.path(vnode) if vnode else ""


class UserCode:
    """The memory of one address space.  Implements `emu.guest.processes.Code`."""

    def __init__(self, memory: UserMemory, space: Space) -> None:
        self._memory = memory
        self._space = space

    def read(self, address: int, size: int) -> bytes:
        """Return bytes.  Raises `BadAddressError`."""
        return self._memory.read(self._space, address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write, whatever the rights there.  Raises `BadAddressError`."""
        self._memory.write(self._space, address, data)

    write_code = write


class ScratchPages:
    """Pages where displaced instructions run, below the room of the stack (fasttrap_scraddr).

    A page can be made between two runs only: whoever finds none has the run end, and comes again.
    """

    def __init__(self, userland: Userland, space: Space, size: int) -> None:
        self._userland = userland
        self._space = space
        self._size = size
        self._free: list[int] = []
        self._contents: dict[int, bytes] = {}
        self.pages: list[int] = []
        self._full = False

    def _add_page(self) -> None:
        offset = self._userland.memory.offset
        address = offset["USRSTACK"] - offset["MAXSSIZ"] - PAGE * (len(self.pages) + 1)
        if not self._userland.guest.call("fasttrap_scraddr", self._space.address, address):
            self._full = True
            return
        self._userland.memory.take_over(self._space, address)
        self.pages.append(address)
        self._free += range(address + PAGE - self._size, address - 1, -self._size)

    def ready(self) -> bool:
        """Tell whether `take` is to be called; False: room is being made, and whoever wants it is to come again."""
        if not self._free and not self._full:
            self._userland.guest.soon(self._add_page)
            return False
        return True

    def take(self) -> int:
        """Return the address of a free slot.  Raises `BadAddressError` if there is no room."""
        if not self._free:
            raise BadAddressError(self._userland.memory.offset["USRSTACK"])
        return self._free.pop()

    def give_back(self, address: int) -> None:
        """Free a slot."""
        self._free.append(address)

    def fill(self, address: int, code: bytes) -> None:
        """Write a slot's code, unless that is what is there."""
        if self._contents.get(address) != code:
            self._userland.memory.write(self._space, address, code)
            self._contents[address] = code


class Userland:
    """The processes of one kernel guest."""

    def __init__(self, guest: KernelGuest) -> None:
        self.guest = guest
        self.isa = guest.isa
        self.engine = guest.engine
        self.traps = TrapHandler(guest.traps.core)
        self.exceptions: list[Callable[[int, int], bool]] = []
        self.memory = UserMemory(guest)
        self.objects = Objects(self)
        self.executed: list[Callable[[Process], object]] = []
        """Called when a process is about to run something else, from its first instruction on."""
        self._watchers: list[Observer] = []
        self._live = UserCpu(self)
        self._cpu: UserCpu | SavedCpu = self._live
        self._processes: dict[int, Process] = {}
        self._threads: dict[int, Thread] = {}
        self._current = guest.introspection.current
        self._generations = count(1)
        guest.serve("dtrace_pid_probe", self._pid_probe)
        guest.serve("dtrace_fasttrap_fork", self._forked)
        guest.serve("dtrace_fasttrap_exec", self._executed)
        guest.serve("dtrace_fasttrap_exit", self._exited)
        guest.serve("dtrace_fasttrap_sendsig", self._signal)
        guest.serve("dtrace_fasttrap_thread_exit", self._thread_ended)
        guest.serve("dtrace_helper_slurp", self._helper)
        guest.serve("dtrace_helper_destroygen", self._no_helper)

    # -- the CPU of the thread in a trap

    @property
    def cpu(self) -> UserCpu | SavedCpu:
        """Its registers and memory."""
        return self._cpu

    @property
    def frame(self) -> Frame:
        """The same as a frame."""
        return self._cpu.frame

    @property
    def native(self) -> bool:
        """Whether it is the CPU itself that is in the trap, so that it can be told to carry a plan out."""
        return self._cpu is self._live

    @contextmanager
    def _saved(self, frame: int) -> Iterator[None]:
        """Have probes see the registers that the kernel has saved."""
        self._cpu = SavedCpu(self, frame)
        try:
            yield
        finally:
            self._cpu = self._live

    def breakpoint(self, address: int) -> int:
        """Take a breakpoint of user mode at once, and answer as the engine's `on_breakpoint` does."""
        answer = self.traps.invop(address, self._live.frame)
        return DELIVER if not answer else HANDLED if answer == CARRIED_OUT else answer

    def exception(self, number: int) -> bool:
        """Take an exception of user mode that may be the end of an out-of-line copy; False: it is not."""
        return any(claims(number, self.engine.pc) for claims in self.exceptions)

    def _pid_probe(self, frame: int, *_: int) -> int:
        with self._saved(frame):
            pc = self._cpu.pc
            address = self._cpu.pc = pc - self.isa.traps.saved_user_pc_after
            claimed = bool(self.traps.invop(address, self._cpu.frame))
            if not claimed:
                self._cpu.pc = pc
        self.guest.probe_taken(claimed=claimed)
        return claimed

    def raise_bad_address(self, address: int) -> None:
        """Have the current thread meet a fault that the emulation of its instruction has met, or see that it has none.

        The page may only not be there yet, or be shared until it is written to: the kernel is
        asked, and the breakpoint is hit again.  Where the kernel refuses, the instruction itself
        has to run into it.
        """
        thread = self.current
        assert thread is not None
        place = self._cpu.pc
        space = thread.process.space

        def ask() -> None:
            for access in (Access.WRITE, Access.READ):
                if self.guest.call("vm_fault", space.address, address, int(access)) == 0:
                    for watcher in self._watchers:
                        watcher.again(thread, place)
                    return
            for watcher in self._watchers:
                watcher.uncover(thread, place)

        self._cpu.discount(1)  # the breakpoint will be counted again
        self.guest.soon(ask)

    # -- processes and threads

    def word(self, address: int, name: str) -> int:
        """Return a word of a structure of the kernel's."""
        return self.engine.load(address + self.memory.offset[name], self.isa.word)

    def process_at(self, address: int) -> Process | None:
        """Return the process of a struct proc; None: there is none with a program."""
        if not address:
            return None
        pid = self.engine.load(address + self.memory.offset["P_PID"], 4)
        found = self._processes.get(pid)
        if found is None or found.address != address:
            found = self._processes[pid] = Process(self, address, pid)
        return found

    def all(self) -> Iterator[Process]:
        """Return the processes that have a program, by the kernel's list (allproc)."""
        address = self.engine.load(self.guest.image.symbol("allproc").value, self.isa.word)
        while address:
            state = self.engine.load(address + self.memory.offset["P_STATE"], 4)
            if state != _ZOMBIE and self.word(address, "P_VMSPACE"):
                process = self.process_at(address)
                assert process is not None
                yield process
            address = self.word(address, "P_LIST")

    def process(self, pid: int) -> Process | None:
        """Return a process that has a program."""
        return next((process for process in self.all() if process.pid == pid), None)

    @property
    def current(self) -> Thread | None:
        """The thread that runs; None: there is none yet."""
        address = self.engine.load(self._current, self.isa.word)
        return self._thread(address) if address else None

    def _thread(self, address: int) -> Thread:
        found = self._threads.get(address)
        if found is None:
            process = self.process_at(self.word(address, "TD_PROC"))
            assert process is not None
            found = self._threads[address] = Thread(address, process)
            process.threads.append(found)
        return found

    def path(self, vnode: int) -> str:
        """Return a file's path, a number where its name is forgotten."""
        return self.memory.path(vnode) or f"<{self.memory.file(vnode).number}>"

    def watch(self, watcher: Observer) -> None:
        """Tell an observer from now on."""
        self._watchers.append(watcher)

    def code(self, process: Process) -> UserCode:
        """Return the memory of a process."""
        return UserCode(self.memory, process.space)

    def slots(self, process: Process, _code: UserCode, size: int, _name: str) -> ScratchPages:
        """Return the out-of-line slots of a process."""
        return ScratchPages(self, process.space, size)

    def drop_slots(self, slots: ScratchPages, child: Process) -> None:
        """Take slots out of a child that has got them by a fork."""
        for page in slots.pages:
            self.guest.call("vm_map_delete", child.space.address, page, page + PAGE)

    def is_shared(self, process: Process) -> bool:
        """Tell whether another process has the same address space."""
        return any(other is not process and other.space == process.space for other in self.all())

    def set_pc(self, thread: Thread, pc: int) -> None:
        """Move a thread that does not run, and is on its way to user mode."""
        SavedCpu(self, self.word(thread.address, "TD_FRAME")).pc = pc

    # -- what the kernel tells

    def _forked(self, parent: int, child: int, _: int) -> None:
        first, second = self.process_at(parent), self.process_at(child)
        assert first is not None
        assert second is not None
        maker = self.current
        pages = self.memory.forget(first.space)
        thread = self._thread(self.word(child, "P_THREADS"))

        def tell() -> None:
            with self._saved(self.word(maker.address, "TD_FRAME")) if maker else self._saved(0):
                for watcher in self._watchers:
                    watcher.born(maker, thread)
                    watcher.forked(first, second)
            self.memory.own_again(pages)

        if self._watchers and maker is not None:
            self.guest.soon(tell)

    def _executed(self, address: int, *_: int) -> None:
        process = self.process_at(address)
        assert process is not None
        for watcher in self._watchers:
            watcher.before_exec(process)
        self.memory.forget(process.space)
        for told in tuple(self.executed):
            told(process)

    def _exited(self, address: int, *_: int) -> None:
        process = self.process_at(address)
        assert process is not None
        self.objects.exited(process)
        for watcher in self._watchers:
            watcher.exited(process)
            for thread in process.threads:
                watcher.thread_ended(thread)
        process.alive = False
        if not self.is_shared(process):
            self.memory.forget(process.space)
        for thread in process.threads:
            self._threads.pop(thread.address, None)
        self._processes.pop(process.pid, None)

    def _thread_ended(self, address: int, *_: int) -> None:
        thread = self._thread(address)
        for watcher in self._watchers:
            watcher.thread_ended(thread)
        thread.process.threads.remove(thread)
        self._threads.pop(address, None)

    def _signal(self, thread: int, frame: int, _: int) -> None:
        with self._saved(frame):
            for watcher in self._watchers:
                watcher.signalled(self._thread(thread))

    def _helper(self, address: int, helper: int, _: int) -> int:
        process = self.process_at(address)
        module, load_address, dof, _pid, _generation = _DOF_HELPER.unpack(self.engine.read(helper, _DOF_HELPER.size))
        name = module.split(b"\0", 1)[0].decode("utf-8", "replace")
        generation = next(self._generations)

        def tell() -> None:
            for watcher in self._watchers:
                watcher.helper_added(process, name, load_address, dof, generation)

        self.guest.soon(tell)
        return generation

    def _no_helper(self, address: int, generation: int, _: int) -> int:
        process = self.process_at(address)
        for watcher in self._watchers:
            watcher.helper_removed(process, generation)
        return 0


class Objects:
    """The ELF files that processes have mapped.  Implements `emu.guest.processes.Objects`."""

    def __init__(self, userland: Userland) -> None:
        self._userland = userland
        self._images: dict[File, Image | None] = {}
        self._last: dict[int, tuple[LoadedObject, ...]] = {}

    def of(self, process: Process) -> tuple[LoadedObject, ...]:
        """Return the objects of a process: the program first, then by address."""
        program = process.executable
        found = [one for area in self._userland.memory.areas(process.space) if (one := self.loaded(area)) is not None]
        return tuple(sorted(found, key=lambda one: (one.file != program, one.bias)))

    def loaded(self, area: Area) -> LoadedObject | None:
        """Return the object whose code an area is, None if it is none's."""
        if not area.vnode or Access.EXECUTE not in area.access:
            return None
        file = self._userland.memory.file(area.vnode)
        if file not in self._images:
            try:
                self._images[file] = Image(
                    self._userland.path(area.vnode), content=self._userland.memory.content(area.vnode)
                )
            except ElfError:
                self._images[file] = None
        image = self._images[file]
        if image is None or image.kind is ElfKind.RELOCATABLE or (address := image.address_of(area.offset)) is None:
            return None
        return LoadedObject(str(image.path), image, area.start - address, file)

    def at(self, process: Process, address: int) -> LoadedObject | None:
        """Return the object that holds an address of a process."""
        return next((one for one in self.of(process) if one.holds(address)), None)

    def chosen(self, _process: Process, _loaded: LoadedObject, _symbol: Symbol) -> Symbol | None:
        """Return nothing: no library of the guest has indirect functions."""
        return None

    def exited(self, process: Process) -> None:
        """Keep what a process had: a trace may be printed after its end."""
        self._last[process.pid] = self.of(process)

    def stack(self, frame: Frame) -> list[int]:
        """Return the pcs of the current thread's stack by frame pointers, innermost first.

        On the first instruction of a function the frame is still the caller's: its own return
        address is where a call left it.
        """
        registers, calling = self._userland.isa.registers, self._userland.isa.calling
        load, word = self._userland.engine.load, self._userland.isa.word
        pc, pointer = frame.register(registers.pc), frame.register(registers.fp)
        pcs = [pc]
        located = self.locate(pc, None)
        try:
            if located is not None and located.symbol and not located.offset:
                pcs.append(frame.register(registers.link) if registers.link else frame.stack_word(0))
            sp = frame.register(registers.sp)
            while len(pcs) < _DEEPEST and pointer >= sp and not pointer % word:
                address = load(pointer + calling.frame_return, word)
                following = load(pointer + calling.frame_next, word)
                if len(pcs) == 1 and registers.link and pointer < address < pointer + _DEEPEST * PAGE:
                    # A function of RISC-V that calls none saves its caller's frame pointer alone, where others save ra.
                    address, following = frame.register(registers.link), address
                if not address:
                    break
                pcs.append(address)
                if following <= pointer:
                    break
                sp = pointer = following
        except BadAddressError:
            pass
        return pcs

    def locate(self, address: int, pid: int | None) -> Location | None:
        """Name an address of a process, None for the current one; None if no object holds it."""
        thread = self._userland.current if pid is None else None
        process = self._userland.process(pid) if pid is not None else thread.process if thread else None
        objects = self._last.get(pid or 0, ()) if process is None else self.of(process)
        found = next((one for one in objects if one.holds(address)), None)
        return None if found is None else found.locate(address)
