"""The kernel of the Linux guest, in Python.

The tables of processes and threads, and the loop that runs them.

A system call ends the CPU's run and is served here; then the CPU continues. A call that blocks is a
generator (`emu.guest.linux.process.process.SystemCall`), kept with its thread until its condition
is true. The parts of the kernel are modules: `schedule` (turns and timers), `on_cpu` (what the CPU
holds), `starting` (execve), `endings` (exit and wait), `traps` (exceptions), `delivery` (signals),
`serving` (system calls).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from itertools import count
from typing import Final

from emu.engine.engine import Engine
from emu.engine.memory.access import Access
from emu.engine.memory.memory import HostMemory
from emu.engine.memory.pages import PAGE
from emu.engine.state import BLOCKS
from emu.engine.time.clock import DEFAULT_RATE, NANOSECONDS, VirtualClock
from emu.guest import processes
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.fasync import AsyncFiles
from emu.guest.linux.fs.inode import Inode
from emu.guest.linux.fs.inotify import Watches
from emu.guest.linux.fs.locks import Waiters
from emu.guest.linux.fs.open_file import FileTable
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.ipc.msg import MessageQueues
from emu.guest.linux.ipc.sem import SemaphoreSets
from emu.guest.linux.ipc.shm import Segments
from emu.guest.linux.mm.address_space import Space
from emu.guest.linux.mm.page_frames import Frames
from emu.guest.linux.mm.user_code import ProcessCode, SlotPages
from emu.guest.linux.native_parts import CallWords, ThreadWords
from emu.guest.linux.net.names import Addresses
from emu.guest.linux.net.netlink import Ports
from emu.guest.linux.net.unix import collect_garbage
from emu.guest.linux.process.exit import Endings
from emu.guest.linux.process.futex import Futexes
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import LinuxObserver, Process, Thread, own
from emu.guest.linux.process.rtmutex import PiLocks
from emu.guest.linux.sched.core import Schedule
from emu.guest.linux.sched.switch import OnCpu
from emu.guest.linux.signal.deliver import Delivery
from emu.guest.linux.signal.pending_signals import has_signal
from emu.guest.linux.signal.send import Sending
from emu.guest.linux.system_call import ServedCall, Serving
from emu.guest.linux.time.alarms import Alarms
from emu.guest.linux.time.timer import Timers
from emu.guest.linux.traps import Traps
from emu.guest.linux.tty.ptmx import Terminals
from emu.isa.base import Isa
from emu.isa.linux_signals import SignalInfo
from emu.probe.trap import TrapHandler
from emu.probe.trap_frames import LiveFrame

RAM: Final = 1 << 30
EPOCH: Final = 1_700_000_000 * NANOSECONDS
# Virtual nanoseconds that a fault takes: time passes also for a program that does nothing but fault.
_FAULT_TIME: Final = 2_000
# Bytes of memory for each open file that there may be (files_maxfiles_init).
_FILE_COST: Final = 10 << 10
# The same for a system call, served or not: the guest's kernel has no instructions that would count.
CALL_TIME: Final = 2_000
# The same for an instruction that is not the CPU's to execute, such as cpuid: the host serves it.
SERVED_TIME: Final = 2_000


class Kernel:
    """The kernel over one engine.  Implements `emu.guest.processes.Processes`.

    `calls(kernel)` returns the system calls by name.  `blocks` is the engine's.  `report(text)` is
    called once for each system call that is not implemented.  `wait_for_host(seconds)` waits for
    input of the user's; None: for as long as it takes.
    """

    def __init__(
        self,
        isa: Isa,
        calls: Callable[[Kernel], Mapping[str, ServedCall]],
        *,
        ram: int = RAM,
        rate: int = DEFAULT_RATE,
        accelerated: bool | None = None,
        blocks: int = BLOCKS,
        quantum: int | None = None,
        cpus: int = 1,
        seed: int = 0,
        report: Callable[[str], object] = lambda _text: None,
        wait_for_host: Callable[[float | None], object] = lambda _seconds: None,
    ) -> None:
        self.isa = isa
        self.abi = isa.linux
        self.report = report
        self.left_out_of_maps: frozenset[str] = frozenset()
        """The names of mappings that /proc/PID/maps does not list."""
        nothing = Space(Frames(memoryview(b""), memoryview(b""), lambda _p, _s: None), 0, 0)
        self.engine = Engine(
            isa, ram, pages=nothing, on_system_call=self._on_system_call, accelerated=accelerated, blocks=blocks
        )
        for name, value in self.abi.initial_registers.items():
            self.engine.write_register(name, value)
        self.abi.prepare(self.engine.cpu)
        assert isinstance(self.engine.memory, HostMemory)
        self.frames = Frames(self.engine.memory.ram, self.engine.memory.executed, self.engine.code.forget)
        self.clock = VirtualClock(self.engine, rate)
        self.traps = TrapHandler()
        self.frame = LiveFrame(self.engine)
        """The registers of the thread that runs, as a breakpoint's handlers see them."""
        self.engine.emulated.served = self._served
        self._goes_on: Thread | None = None
        """The thread whose run the tracer has ended; None: the run has ended by itself."""
        self._until: int | None = None
        """Virtual time at which the run under way is to end; None: it has no such time."""
        self.tasks = Tasks(self.engine.note_thread)
        self.processes, self.threads = self.tasks.processes, self.tasks.threads
        self.observers = self.tasks.observers
        self.on_cpu = OnCpu(self.engine, self.frames, self.tasks)
        self.random = random.Random(0)  # noqa: S311  a run is to be the same every time
        self.root = Directory()
        self._inode_numbers = count(2)
        self.thread_words = ThreadWords()
        self.call_arguments = CallWords()
        """The current thread, for machine code."""
        self.alarms = Alarms(self.clock)
        self.schedule = Schedule(self.engine, self.alarms, self.tasks, wait_for_host, quantum, cpus, seed)
        self.engine.emulated.cpu_number = lambda: self.schedule.cpus.here.number
        self.sending = Sending(self.schedule)
        self.timers = Timers(self.alarms, self.sending)
        self.futexes = Futexes(self.schedule.blocked.changed)
        self.pi_locks = PiLocks(isa, self.futexes, self.schedule, self.tasks)
        self.async_files = AsyncFiles(self.tasks, self.sending)
        self.lock_waiters = Waiters()
        self.segments = Segments(self.tasks, self.frames, self.wall)
        self.semaphores = SemaphoreSets(self.wall)
        self.message_queues = MessageQueues(self.wall)
        self.posix_queues = Directory(0o1777)
        """The queues of POSIX by name: what /dev/mqueue shows."""
        self.file_memory = FileMemory(lambda: self.frames.size - self.frames.used * PAGE)
        """Counts what files hold: memory, as in a tmpfs."""
        self.open_files = FileTable(
            ram // _FILE_COST, lambda: collect_garbage(self.processes.values(), self.open_files.files)
        )
        self.addresses = Addresses()
        self.netlink_ports = Ports()
        self.watches = Watches()
        self.terminals = Terminals(self.tasks, self.sending, self.wall)
        self.endings = Endings(
            self.tasks,
            self.on_cpu,
            self.schedule,
            self.sending,
            self.timers,
            self.futexes,
            self.pi_locks,
            self.semaphores,
            self.terminals,
        )
        self.delivery = Delivery(self.engine, self.sending, self.timers, self.endings, report)
        self.trapping = Traps(self.engine, self.traps, self.frame, self.tasks, report)
        self.exceptions = self.trapping.exceptions
        self._serving = Serving(self.engine, self.tasks, self.schedule, self.delivery, calls(self), report)

    @property
    def current(self) -> Thread | None:
        """The thread that runs."""
        return self.tasks.current

    @property
    def first(self) -> Process | None:
        """The process that the guest was started for."""
        return self.tasks.first

    def _served(self) -> None:
        """Let time pass for an instruction that the host has served."""
        self.let_pass(SERVED_TIME)

    def let_pass(self, nanoseconds: int) -> None:
        """Let time pass during a run, in which nothing is executed: the run ends sooner."""
        self.clock.let_pass(nanoseconds)
        if self._until is not None:
            self.engine.running.end_earlier(self.clock.instructions_at(self._until))

    def _on_system_call(self) -> None:
        self.trapping.on_system_call()

    # -- memory of the current process, as system calls reach it

    def read(self, address: int, size: int) -> bytes:
        """Read.  Raises `BadAddressError`."""
        return self.engine.memory.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Write.  Raises `BadAddressError`; then nothing is written."""
        self.engine.memory.write(address, data)

    # -- what probes ask (`emu.guest.processes.Processes`)

    @property
    def cpu(self) -> Engine:
        """The registers and memory of the thread that runs."""
        return self.engine

    @property
    def native(self) -> bool:
        """The kernel is Python: it is always the CPU itself that is in a trap."""
        return True

    def process(self, pid: int) -> Process | None:
        """Return a process."""
        return self.processes.get(pid)

    def alive(self) -> list[Process]:
        """Return the processes that run a program."""
        return [process for process in self.processes.values() if process.alive]

    def watch(self, watcher: LinuxObserver) -> None:
        """Tell an observer of all events from now on."""
        self.observers.append(watcher)

    def code(self, process: processes.Process) -> ProcessCode:
        """Return the memory of a process."""
        return ProcessCode(self.engine, own(process).space)

    def slots(self, process: processes.Process, size: int, name: str) -> SlotPages:
        """Return the out-of-line slots of a process."""
        return SlotPages(self.code(process), size, name)

    def drop_slots(self, slots: processes.Slots, child: processes.Process) -> None:
        """Take slots out of a child that has got them by a fork."""
        assert isinstance(slots, SlotPages)
        slots.unmap_from(own(child).space)

    def is_shared(self, process: processes.Process) -> bool:
        """Return whether another process has the same address space."""
        return own(process).space.users > 1

    def raise_fault(self, fault: SignalInfo) -> int:
        """End the run, and send the thread that ran a signal it cannot refuse; from a trap."""
        return self.trapping.raise_fault(fault)

    def raise_bad_address(self, address: int) -> int:
        """Send the current thread the signal for its access to a bad address; from a trap."""
        assert self.current is not None
        space = self.current.process.space
        access = Access.READ if space.reach(address, Access.READ) is None else Access.WRITE
        return self.raise_fault(self.trapping.page_fault(self.current, access, address))

    def set_pc(self, thread: processes.Thread, pc: int) -> None:
        """Move a thread that does not run."""
        assert isinstance(thread, Thread)
        thread.context.reg_write(self.isa.unicorn.ids[self.isa.registers.pc], pc)

    # -- tables

    def numbered(self, inode: Inode) -> Inode:
        """Return an inode with its number, which it gets when it is first asked for."""
        inode.number = inode.number or next(self._inode_numbers)
        return inode

    def add_thread(self, thread: Thread) -> None:
        """Let a new thread run, after those that wait for their turn."""
        thread.process.threads.append(thread)
        self.threads[thread.tid] = thread
        self.schedule.make_ready(thread)

    # -- running

    def run(self, deadline: int | None) -> bool:
        """Run until virtual time `deadline` or until `interrupt`.

        False when the first process has ended.

        Raises `emu.guest.base.GuestError`.
        """
        assert self.first is not None
        self.schedule.interrupted = False
        while self.first.alive:
            self.schedule.cpus.take_turns()
            if self.schedule.interrupted or (deadline is not None and self.clock.now() >= deadline):
                return True
            self.alarms.ring()
            if self.async_files:
                self.async_files.look()
            thread = self._following()
            if thread is not None:
                self._run(thread, deadline)
            elif self.schedule.all_wait():
                self.schedule.idle(deadline)
        return False

    def _following(self) -> Thread | None:
        """Return the thread to run: the same one if only the tracer has ended its run.

        The tracer's deadlines do not change the order of threads.
        """
        thread, self._goes_on = self._goes_on, None
        if thread is not None and thread is self.schedule.cpus.here.running:
            return thread
        return self.schedule.next()

    def on_every_cpu(self, action: Callable[[], object]) -> None:
        """Do something on each CPU in turn, with its thread if it has one; between two runs."""
        for cpu in self.schedule.cpus.each():
            self.on_cpu.show(cpu.running)
            action()

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970."""
        return EPOCH + self.clock.now()

    def interrupt(self) -> None:
        """Make the current run return soon."""
        self.schedule.interrupted = True
        self.engine.stop()

    def _may_be_interrupted(self, thread: Thread) -> bool:
        """Return whether a thread may take a signal now, as all observers say."""
        for observer in self.observers:  # noqa: SIM110  this runs after each system call
            if not observer.may_be_interrupted(thread):
                return False
        return True

    def _end_of_run(self, deadline: int | None) -> int | None:
        """Return the time at which the next run has to end; None: there is no limit."""
        ends = (deadline, self.schedule.upcoming(), self.schedule.cpus.until)
        return min((end for end in ends if end is not None), default=None)

    def _is_due(self) -> bool:
        """Return whether it is time for something of the guest: an alarm, or another CPU's turn."""
        due = self._end_of_run(None)
        return due is not None and self.clock.now() >= due

    def _run(self, thread: Thread, deadline: int | None) -> None:
        self.on_cpu.switch(thread)
        if thread.call is not None and not self._serving.resume(thread):
            return
        limit = self.schedule.turn_limit
        before = self.engine.instructions
        if not self._may_be_interrupted(thread):
            if has_signal(thread):
                limit = min(limit, before + 1)  # the signal waits until the displaced instruction is done
        elif not self.delivery.deliver(thread):
            return
        self._until = until = self._end_of_run(deadline)
        if until is not None:
            limit = min(limit, self.clock.instructions_at(until))
        self.thread_words.running()
        try:
            fault = self.trapping.advance(thread, partial(self.engine.run, limit))
        finally:
            self.thread_words.stopped()
        ran = self.engine.instructions - before
        thread.ran += ran
        thread.process.ran += ran
        self.schedule.ran(thread, ran)
        if fault is not None:
            self.clock.let_pass(_FAULT_TIME)
            self.sending.force(thread, fault)
        elif self.trapping.take_call():
            self.clock.let_pass(CALL_TIME)
            self.schedule.called()
            self._serving.serve(thread)
        elif self.engine.instructions >= self.schedule.turn_limit:
            self.schedule.give_way()
        elif not self._is_due():
            self._goes_on = thread
