"""The processes and threads of the kernel guest, from the kernel's own lists."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from emu.guest import processes
from emu.guest.kernel.user.memory import File, Space, UserMemory
from emu.guest.kernel.view import KernelView

# p_state of a process that has ended (testbins/kernel/sys/proc.h).
_ZOMBIE: Final = 2


class Thread:
    """A thread (struct thread)."""

    call_name = ""

    def __init__(self, address: int, process: Process) -> None:
        self.address = address
        self.process = process


class Process:
    """A process (struct proc)."""

    def __init__(self, table: UserProcesses, address: int, pid: int) -> None:
        self._table = table
        self.address = address
        self.pid = pid
        self.alive = True
        self.threads: list[Thread] = []

    @property
    def parent(self) -> Process | None:
        """Return the process that created it."""
        return self._table.process_at(self._table.word(self.address, "P_PPTR"))

    @property
    def space(self) -> Space:
        """Return its address space."""
        return Space(self._table.word(self.address, "P_VMSPACE"))

    @property
    def executable(self) -> File | None:
        """Return the program's file."""
        vnode = self._table.word(self.address, "P_TEXTVP")
        return self._table.memory.file(vnode) if vnode else None

    @property
    def path(self) -> str:
        """Return the path of the program."""
        vnode = self._table.word(self.address, "P_TEXTVP")
        return self._table.path(vnode) if vnode else ""


def own(process: processes.Process) -> Process:
    """Return a process of the kernel guest.  Raises TypeError for another guest's."""
    if not isinstance(process, Process):
        raise TypeError(f"process {process.pid} is not one of the kernel guest")
    return process


class UserProcesses:
    """The processes that have a program."""

    def __init__(self, guest: KernelView, memory: UserMemory) -> None:
        self.isa = guest.isa
        self.engine = guest.engine
        self.memory = memory
        self._image = guest.image
        self._current = guest.introspection.current
        self._processes: dict[int, Process] = {}
        self._threads: dict[int, Thread] = {}

    def word(self, address: int, name: str) -> int:
        """Return a word of one of the kernel's structures."""
        return self.engine.load(address + self.memory.offset[name], self.isa.word)

    def process_at(self, address: int) -> Process | None:
        """Return the process of a struct proc; None if the address is 0."""
        if not address:
            return None
        pid = self.engine.load(address + self.memory.offset["P_PID"], 4)
        found = self._processes.get(pid)
        if found is None or found.address != address:
            found = self._processes[pid] = Process(self, address, pid)
        return found

    def alive(self) -> Iterator[Process]:
        """Return the processes that have a program, by the kernel's list (allproc)."""
        address = self.engine.load(self._image.symbol("allproc").value, self.isa.word)
        while address:
            state = self.engine.load(address + self.memory.offset["P_STATE"], 4)
            if state != _ZOMBIE and self.word(address, "P_VMSPACE"):
                process = self.process_at(address)
                assert process is not None
                yield process
            address = self.word(address, "P_LIST")

    def process(self, pid: int) -> Process | None:
        """Return a process that has a program."""
        return next((process for process in self.alive() if process.pid == pid), None)

    @property
    def current(self) -> Thread | None:
        """Return the current thread; None before there is one."""
        address = self.engine.load(self._current, self.isa.word)
        return self.thread_at(address) if address else None

    def thread_at(self, address: int) -> Thread:
        """Return the thread of a struct thread."""
        found = self._threads.get(address)
        if found is None:
            process = self.process_at(self.word(address, "TD_PROC"))
            assert process is not None
            found = self._threads[address] = Thread(address, process)
            process.threads.append(found)
        return found

    def path(self, vnode: int) -> str:
        """Return a file's path, or a number if its name is forgotten."""
        return self.memory.path(vnode) or f"<{self.memory.file(vnode).number}>"

    def is_shared(self, process: processes.Process) -> bool:
        """Return whether another process has the same address space."""
        return any(other is not process and other.space == process.space for other in self.alive())

    def thread_ended(self, thread: Thread) -> None:
        """Forget a thread."""
        thread.process.threads.remove(thread)
        self._threads.pop(thread.address, None)

    def ended(self, process: Process) -> None:
        """Forget a process, and its threads."""
        process.alive = False
        for thread in process.threads:
            self._threads.pop(thread.address, None)
        self._processes.pop(process.pid, None)
