"""The thread and the address space that the CPU holds."""

from __future__ import annotations

from emu.engine.engine import Engine
from emu.engine.qemu.tlb import Fills
from emu.guest.linux.mm.address_space import Space
from emu.guest.linux.mm.page_frames import Frames
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Life, Thread


class OnCpu:
    """Changes the thread and address space of one CPU, between two runs or in a system call."""

    def __init__(self, engine: Engine, frames: Frames, tasks: Tasks) -> None:
        self._engine = engine
        self._frames = frames
        self._tasks = tasks
        self._pristine = engine.cpu.new_context()

    def write(self, address: int, data: bytes) -> None:
        """Write memory of the process that runs.  Raises `BadAddressError`."""
        self._engine.memory.write(address, data)

    def empty_space(self) -> Space:
        """Return an address space without any memory."""
        return Space(self._frames, 0, 0)

    def use(self, space: Space) -> None:
        """Put an address space on the CPU."""
        old = getattr(self._engine.memory, "space", None)
        if old is space:
            return
        self._connect(space)
        self._engine.spaces.use(space)

    def fork(self, space: Space) -> Space:
        """Return a copy of an address space.  What the CPU knows of the pages holds in both."""
        child = space.fork()
        self._engine.spaces.fills(space).copy_to(self._connect(child), child.resident_pages)
        return child

    def _connect(self, space: Space) -> Fills:
        """Make the CPU hear of changes of an address space, also while it holds another one."""
        fills = self._engine.spaces.fills(space)
        space.flush_page, space.forbid_writing = fills.forget_page, fills.forbid_writing
        return fills

    def leave_space(self, space: Space) -> None:
        """Drop one user of an address space; the last one frees it."""
        space.users -= 1
        if not space.users:
            if space is getattr(self._engine.memory, "space", None):
                self.use(self.empty_space())
            space.release()
            self._engine.spaces.forget(space)

    def reset_registers(self, pc: int, sp: int) -> None:
        """Give the CPU the registers with which a program starts."""
        self._engine.cpu.restore(self._pristine)
        self._engine.pc = pc
        self._engine.write_register(self._engine.isa.registers.sp, sp)

    def show(self, thread: Thread | None) -> None:
        """Put a thread on the CPU that is looked at; None: the CPU has none, and no registers."""
        if thread is not None:
            self.switch(thread)
        else:
            self._keep_registers()
            self._engine.cpu.restore(self._pristine)
            self._tasks.current = None

    def _keep_registers(self) -> None:
        current = self._tasks.current
        if current is not None and current.life is not Life.DEAD:
            if current.context is None:
                current.context = self._engine.cpu.new_context()
            else:
                self._engine.cpu.save(current.context)

    def switch(self, thread: Thread) -> None:
        """Put a thread's registers and address space on the CPU."""
        if self._tasks.current is not thread:
            self._keep_registers()
            if thread.context is not None:
                self._engine.cpu.restore(thread.context)
            self._tasks.current = thread
        thread.process.show(thread)
        self.use(thread.process.space)
