"""The user programs of the kernel guest, for providers: `emu.guest.processes.Processes`.

Processes and threads are the guest kernel's; they are found here by their addresses, and the kernel
reports their forks, execs and ends by its gates (dtrace_fasttrap_fork and the others).  Memory of a
process is written between two runs: a gate or a trap that must write ends the run first
(`OutsideCalls.soon`).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from typing import Final, TypeAlias

from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import of_exception
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.state import DELIVER, HANDLED
from emu.guest import processes
from emu.guest.kernel.gates import Gates
from emu.guest.kernel.outside_calls import OutsideCalls
from emu.guest.kernel.trap_path import KernelTraps
from emu.guest.kernel.user.code import ScratchPages, UserCode
from emu.guest.kernel.user.memory import UserMemory
from emu.guest.kernel.user.objects import Objects
from emu.guest.kernel.user.processes import Process, Thread, UserProcesses, own
from emu.guest.kernel.user.saved_cpu import SavedCpu, UserCpu
from emu.guest.kernel.view import KernelView
from emu.guest.observer import Observer
from emu.guest.processes import EXECUTED
from emu.probe.hit_cache import HitCache, Rest
from emu.probe.trap import TrapHandler

# struct dof_helper, as the kernel passes it (testbins/kernel/sys/dof.h).
_DOF_HELPER: Final = struct.Struct("<64sQQii")


# An observer of the processes of the kernel guest.
KernelGuestObserver: TypeAlias = Observer[Process, Thread, processes.Area]


class Userland(UserProcesses):
    """The processes of one kernel guest, and their events."""

    def __init__(self, guest: KernelView, outside: OutsideCalls, traps: KernelTraps, gates: Gates) -> None:
        super().__init__(guest, UserMemory(guest, outside))
        self._outside = outside
        self._kernel_traps = traps
        self._discount = guest.clock.discount
        self.traps = TrapHandler(guest.traps.core)
        self.exceptions: list[Callable[[int, int], bool]] = []
        self.objects = Objects(self)
        self.executed: list[Callable[[Process], object]] = []
        """Called when a process is about to execute the first instruction of another program."""
        self._watchers: list[KernelGuestObserver] = []
        self._live = UserCpu(self)
        self._cpu: UserCpu | SavedCpu = self._live
        # On i386 the word behind it is looked at too: it names the idle thread, which stays the same.
        self.engine.find_thread_at(guest.introspection.current - guest.isa.kernel_base)
        self._hit_cache = HitCache(self.engine, self.traps, traps, self._live.frame, by_space=True)
        self._generations = count(1)
        gates.serve("dtrace_pid_probe", self._pid_probe)
        gates.serve("dtrace_fasttrap_fork", self._forked)
        gates.serve("dtrace_fasttrap_exec", self._executed)
        gates.serve("dtrace_fasttrap_exit", self._exited)
        gates.serve("dtrace_fasttrap_sendsig", self._signal)
        gates.serve("dtrace_fasttrap_thread_exit", self._thread_ended)
        gates.serve("dtrace_helper_slurp", self._helper)
        gates.serve("dtrace_helper_destroygen", self._no_helper)

    # -- the CPU of the thread in a trap

    @property
    def cpu(self) -> UserCpu | SavedCpu:
        """Return its registers and memory."""
        return self._cpu

    @property
    def frame(self) -> Frame:
        """Return its registers as a frame."""
        return self._cpu.frame

    @property
    def native(self) -> bool:
        """Return whether the trapped thread is on the CPU: then machine code can do a plan."""
        return self._cpu is self._live

    @contextmanager
    def _saved(self, frame: int) -> Iterator[None]:
        """Give probes the registers that the kernel has saved, instead of those of the CPU."""
        self._cpu = SavedCpu(self, frame, self._discount)
        try:
            yield
        finally:
            self._cpu = self._live

    def breakpoint(self, address: int) -> int:
        """Take a breakpoint of user mode on the host path; answer as `TrapTaker.breakpoint` does."""
        answer = self.traps.invop(address, self._live.frame)
        if answer:
            self._hit_cache.store(address)
        return DELIVER if not answer else HANDLED if answer == EXECUTED else answer

    def rest(self, address: int) -> Rest | None:
        """Return the function that completes a hit of user mode after machine code."""
        return self._hit_cache.rest(address)

    def exception(self, number: int) -> bool:
        """Take an exception of user mode that may be the end of an out-of-line copy.

        False: it is not.
        """
        pc = self.engine.pc
        claimed = any(claims(number, pc) for claims in self.exceptions)
        if claimed:
            self._hit_cache.store(of_exception(number, pc))
        return claimed

    def _pid_probe(self, frame: int, *_: int) -> int:
        with self._saved(frame):
            pc = self._cpu.pc
            address = self._cpu.pc = pc - self.isa.traps.saved_user_pc_after
            claimed = bool(self.traps.invop(address, self._cpu.frame))
            if not claimed:
                self._cpu.pc = pc
        self._kernel_traps.user_probe(claimed=claimed)
        return claimed

    def raise_bad_address(self, address: int) -> None:
        """Give the current thread the page fault of its emulated instruction.

        The page may be not yet present, or shared until it is written to.  So the kernel is called
        to make it present, and then the thread hits the breakpoint again.  If the kernel refuses,
        the instruction itself must be executed, to fault as it would without a probe.
        """
        thread = self.current
        assert thread is not None
        stopped = self._cpu.pc
        space = thread.process.space

        def ask() -> None:
            for access in (Access.WRITE, Access.READ):
                if self._outside.call("vm_fault", space.address, address, int(access)) == 0:
                    for watcher in self._watchers:
                        watcher.again(thread, stopped)
                    return
            for watcher in self._watchers:
                watcher.uncover(thread, stopped)

        self._cpu.discount(1)  # the breakpoint will be counted again
        self._outside.soon(ask)

    def watch(self, watcher: KernelGuestObserver) -> None:
        """Report to an observer from now on."""
        self._watchers.append(watcher)

    def code(self, process: processes.Process) -> UserCode:
        """Return the memory of a process."""
        return UserCode(self.memory, own(process).space)

    def slots(self, process: processes.Process, size: int, name: str) -> ScratchPages:
        """Return the out-of-line slots of a process."""
        del name
        return ScratchPages(self.memory, self._outside, own(process).space, size)

    def drop_slots(self, slots: processes.Slots, child: processes.Process) -> None:
        """Remove the slots from a child, which has a copy of them after a fork."""
        assert isinstance(slots, ScratchPages)
        for page in slots.pages:
            self._outside.call("vm_map_delete", own(child).space.address, page, page + PAGE)

    def set_pc(self, thread: processes.Thread, pc: int) -> None:
        """Set the pc of a thread that does not run, and that is about to return to user mode."""
        assert isinstance(thread, Thread)
        SavedCpu(self, self.word(thread.address, "TD_FRAME"), self._discount).pc = pc

    # -- reports of the kernel

    def _known(self, address: int) -> Process:
        """Return the process that the kernel reports about."""
        process = self.process_at(address)
        assert process is not None
        return process

    def _forked(self, parent: int, child: int, _: int) -> None:
        first, second = self._known(parent), self._known(child)
        maker = self.current
        pages = self.memory.forget(first.space)
        thread = self.thread_at(self.word(child, "P_THREADS"))

        if not self._watchers or maker is None:
            return

        def tell() -> None:
            with self._saved(self.word(maker.address, "TD_FRAME")):
                for watcher in self._watchers:
                    watcher.born(maker, thread)
                    watcher.forked(first, second)
            self.memory.own_again(pages)

        self._outside.soon(tell)

    def _executed(self, address: int, *_: int) -> None:
        process = self._known(address)
        for watcher in self._watchers:
            watcher.before_exec(process)
        self.memory.forget(process.space)
        for told in tuple(self.executed):
            told(process)

    def _exited(self, address: int, *_: int) -> None:
        process = self._known(address)
        self.objects.exited(process)
        for watcher in self._watchers:
            watcher.exited(process)
            for thread in process.threads:
                watcher.thread_ended(thread)
        if not self.is_shared(process):
            self.memory.forget(process.space)
        self.ended(process)

    def _thread_ended(self, address: int, *_: int) -> None:
        thread = self.thread_at(address)
        for watcher in self._watchers:
            watcher.thread_ended(thread)
        self.thread_ended(thread)

    def _signal(self, thread: int, frame: int, _: int) -> None:
        with self._saved(frame):
            for watcher in self._watchers:
                watcher.signalled(self.thread_at(thread))

    def _helper(self, address: int, helper: int, _: int) -> int:
        process = self._known(address)
        module, load_address, dof, _pid, _generation = _DOF_HELPER.unpack(self.engine.read(helper, _DOF_HELPER.size))
        name = module.split(b"\0", 1)[0].decode("utf-8", "replace")
        generation = next(self._generations)

        def tell() -> None:
            for watcher in self._watchers:
                watcher.helper_added(process, name, load_address, dof, generation)

        self._outside.soon(tell)
        return generation

    def _no_helper(self, address: int, generation: int, _: int) -> int:
        process = self._known(address)
        for watcher in self._watchers:
            watcher.helper_removed(process, generation)
        return 0
