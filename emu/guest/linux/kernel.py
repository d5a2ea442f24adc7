"""The kernel of the Linux guest, in Python: processes, threads, who runs next, and how they begin and end.

One CPU is shared by all threads in turn.  A thread runs until it blocks, or until its turn is over,
which is counted in instructions; so the same programs are interleaved in the same way every time.
A system call ends the CPU's run, is served here, and goes on; one that blocks is a generator
(`emu.guest.linux.process.SystemCall`), kept with its thread until what it waits for has come.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable
from itertools import count
from typing import TYPE_CHECKING, Final

from emu.engine.access import Access
from emu.engine.clock import DEFAULT_RATE, NANOSECONDS, VirtualClock
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError, PageFaultError
from emu.engine.state import BLOCKS, HANDLED
from emu.frame import LiveFrame
from emu.guest.base import BadAddressError, GuestError
from emu.guest.linux import faults, loader
from emu.guest.linux.abi.errno import ENOMEM, LinuxError
from emu.guest.linux.abi.signals import (
    CLD_DUMPED,
    CLD_EXITED,
    CLD_KILLED,
    SA_NOCLDWAIT,
    Signal,
    SignalInfo,
)
from emu.guest.linux.abi.tables import ABIS
from emu.guest.linux.code import ProcessCode, SlotPages
from emu.guest.linux.delivery import Delivery
from emu.guest.linux.files import Descriptors
from emu.guest.linux.frames import Frames, OutOfMemoryError
from emu.guest.linux.futexes import Futexes
from emu.guest.linux.inodes import Directory, Inode
from emu.guest.linux.operands import fault_address
from emu.guest.linux.paths import path_of, walk
from emu.guest.linux.process import (
    Life,
    Process,
    Signals,
    Surroundings,
    Thread,
)
from emu.guest.linux.segments import Segments
from emu.guest.linux.serving import Serving
from emu.guest.linux.space import Space
from emu.guest.observer import Observer
from emu.guest.processes import CARRIED_OUT
from emu.isa.base import Isa
from emu.trap import TrapHandler

if TYPE_CHECKING:
    from emu.guest.linux.calls.table import Handler

RAM: Final = 1 << 30
EPOCH: Final = 1_700_000_000 * NANOSECONDS
FIRST_PID: Final = 100
# Instructions after which a thread gives way when it makes a system call.
TURN: Final = 200_000
# Instructions after which it gives way wherever it is.
LONGEST_TURN: Final = 10 * TURN
# Instructions of its turn that a system call takes.
_CALL_COST: Final = 2_000


class Stuck(GuestError):  # noqa: N818  what happened, not whose fault it is
    """Every thread waits for something that cannot come."""


class Kernel:
    """The kernel over one engine.

    `blocks` is the engine's.  `report(text)` is told, once each, of system calls that are not
    there.  `wait_for_host(seconds)` waits for input of the user's; None: for as long as it takes.
    """

    def __init__(
        self,
        isa: Isa,
        calls: dict[str, Handler],
        *,
        ram: int = RAM,
        rate: int = DEFAULT_RATE,
        accelerated: bool | None = None,
        blocks: int = BLOCKS,
        report: Callable[[str], object] = lambda _text: None,
        wait_for_host: Callable[[float | None], object] = lambda _seconds: None,
    ) -> None:
        self.isa = isa
        self.abi = ABIS[isa.name]
        nothing = Space(Frames(memoryview(b""), lambda _p, _s: None), 0, 0)
        self.engine = Engine(
            isa, ram, pages=nothing, on_system_call=self._on_system_call, accelerated=accelerated, blocks=blocks
        )
        faults.enable_floating_point(self.engine)
        self.frames = Frames(self.engine.memory.ram, self.engine.forget_code)
        self.clock = VirtualClock(self.engine, rate)
        self.traps = TrapHandler()
        self.frame = LiveFrame(self.engine)
        """The registers of the thread that runs, as a breakpoint's handlers see them."""
        self.random = random.Random(0)  # noqa: S311  a run is to be the same every time
        self.root = Directory()
        self._inode_numbers = count(2)
        self.processes: dict[int, Process] = {}
        self.threads: dict[int, Thread] = {}
        self.current: Thread | None = None
        self.first: Process | None = None
        """The process that the guest was started for."""
        self.observers: list[Observer] = []
        self.delivery = Delivery(self)
        self.exceptions: list[Callable[[int, int], bool]] = []
        """Asked (number, pc) about each exception but breakpoints and page faults: whether it is
        theirs."""
        if isa.name == "i386":
            self.exceptions.append(Segments(self.engine).claims)
        self.interrupted = False
        self._serving = Serving(self, calls, report)
        self._report = report
        self._wait_for_host = wait_for_host
        self._ready: deque[Thread] = deque()
        self._next_pid = FIRST_PID
        self._called = False
        self._fault: SignalInfo | None = None
        self._turn_end = 0
        self.futexes = Futexes()
        self.restorers: dict[Space, int] = {}
        """Address of the code that returns from a signal, by address space."""
        self._pristine = self.engine.new_context()
        self.engine.on_breakpoint = self._breakpoint
        self.engine.on_trap = self._trap

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

    def watch(self, watcher: Observer) -> None:
        """Tell an observer from now on."""
        self.observers.append(watcher)

    def code(self, process: Process) -> ProcessCode:
        """Return the memory of a process."""
        return ProcessCode(self, process.space)

    def slots(self, _process: Process, code: ProcessCode, size: int, name: str) -> SlotPages:
        """Return the out-of-line slots of a process."""
        return SlotPages(self, code, size, name)

    def drop_slots(self, slots: SlotPages, child: Process) -> None:
        """Take slots out of a child that has got them by a fork."""
        slots.unmap_from(child.space)

    def is_shared(self, process: Process) -> bool:
        """Tell whether another process has the same address space."""
        return process.space.users > 1

    # -- beginning and end

    def start(
        self,
        path: str,
        arguments: tuple[bytes, ...],
        environment: tuple[bytes, ...],
        files: Descriptors,
        directory: Directory | None = None,
    ) -> Process:
        """Make the first process.  Raises `LinuxError`."""
        pid = self.new_pid()
        surroundings = Surroundings(self.root, directory or self.root)
        process = Process(pid, None, self._empty_space(), files, surroundings, Signals(), group=pid, session=pid)
        thread = Thread(pid, process)
        process.threads.append(thread)
        self.processes[pid] = process
        self.threads[pid] = thread
        self.first = process
        self.current = thread
        self.execute(thread, path, arguments, environment)
        self._ready.append(thread)
        return process

    def _empty_space(self) -> Space:
        return Space(self.frames, 0, 0)

    def new_pid(self) -> int:
        """Return the next number of a process or thread."""
        pid = self._next_pid
        self._next_pid += 1
        return pid

    def execute(self, thread: Thread, path: str, arguments: tuple[bytes, ...], environment: tuple[bytes, ...]) -> None:
        """Replace what the current thread's process runs (execve).  Raises `LinuxError`; then nothing has changed."""
        process = thread.process
        try:
            program = loader.load(
                self.frames,
                self.isa.name,
                self.abi,
                lambda name: self._find_program(process, name),
                path,
                arguments,
                environment,
                self.random.randbytes(16),
            )
        except OutOfMemoryError:
            raise LinuxError(ENOMEM) from None
        for observer in self.observers:
            observer.before_exec(process)
        for other in list(process.threads):
            if other is not thread:
                self._end_thread(other)
        if thread.tid != process.pid:
            del self.threads[thread.tid]
            thread.tid = process.pid
            self.threads[thread.tid] = thread
        self._leave_space(process.space)
        process.space = program.space
        self.restorers[program.space] = program.restorer
        self._use(program.space)
        process.files.executed()
        process.signals = process.signals.copy()
        for action in process.signals.actions:
            if action.handler > 1:
                action.handler = 0
            action.flags = action.mask = action.restorer = 0
        process.frames.clear()
        process.executable, process.path, process.entry = program.file, program.path, program.program_entry
        process.arguments, process.environment = program.arguments, environment
        process.auxiliary = program.auxiliary
        process.name = program.path.rsplit("/", 1)[-1][:15]
        process.executed = True
        thread.clear_tid = thread.robust_list = 0
        thread.stack.address, thread.stack.flags, thread.stack.size = 0, 2, 0
        thread.vfork_done = True
        self.engine.restore(self._pristine)
        self.engine.pc = program.entry
        self.engine.write_register(self.isa.registers.sp, program.stack)
        for observer in self.observers:
            observer.executed(process)

    def _find_program(self, process: Process, path: str) -> tuple[Inode, str]:
        surroundings = process.surroundings
        place = walk(surroundings.root, surroundings.directory, path)
        inode = place.found()
        if inode is process.executable:
            return inode, process.path  # /proc/self/exe has no better name
        return inode, path_of(surroundings.root, place.directory, place.name)

    def exit_process(self, process: Process, status: int) -> None:
        """End a process with a wait status."""
        if process.status is not None:
            return
        process.status = status
        for observer in self.observers:
            observer.exited(process)
        for thread in list(process.threads):
            self._end_thread(thread)
        process.files.close_all()
        self._leave_space(process.space)
        for child in process.children:
            child.parent = self.first if self.first is not process else None
            if child.parent is not None:
                child.parent.children.append(child)
        process.children.clear()
        parent = process.parent
        if parent is None or not parent.alive:
            process.reaped = True
            self.processes.pop(process.pid, None)
            return
        if not process.exit_signal:
            return
        low = status & 0x7F
        code = CLD_EXITED if not low else CLD_DUMPED if status & 0x80 else CLD_KILLED
        self.delivery.send(
            parent,
            SignalInfo(process.exit_signal, code, pid=process.pid, status=low or status >> 8),
        )
        action = parent.signals.actions[Signal.SIGCHLD]
        if process.exit_signal == Signal.SIGCHLD and (action.handler == 1 or action.flags & SA_NOCLDWAIT):
            self.reap(process)

    def reap(self, process: Process) -> None:
        """Forget a process whose end has been told."""
        process.reaped = True
        self.processes.pop(process.pid, None)
        if process.parent is not None and process in process.parent.children:
            process.parent.children.remove(process)

    def exit_thread(self, thread: Thread, status: int) -> None:
        """End a thread; its process ends with its last one."""
        process = thread.process
        if thread.clear_tid:
            try:
                self.write(thread.clear_tid, bytes(4))
                self.futexes.wake(process.space, thread.clear_tid, 1)
            except BadAddressError:
                pass
        self._end_thread(thread)
        if not process.threads:
            self.exit_process(process, status)

    def _end_thread(self, thread: Thread) -> None:
        for observer in self.observers:
            observer.thread_ended(thread)
        thread.life = Life.DEAD
        thread.vfork_done = True
        if thread.call is not None:
            thread.call.close()
            thread.call = None
        thread.process.threads.remove(thread)
        self.threads.pop(thread.tid, None)
        if thread in self._ready:
            self._ready.remove(thread)
        if self.current is thread:
            self.current = None

    def _leave_space(self, space: Space) -> None:
        space.users -= 1
        if not space.users:
            if space is getattr(self.engine.memory, "space", None):
                self._use(self._empty_space())
            self.restorers.pop(space, None)
            space.release()

    def make_ready(self, thread: Thread) -> None:
        """Let a thread have its turn."""
        if thread not in self._ready:
            self._ready.append(thread)

    def add_thread(self, thread: Thread) -> None:
        """Let a new thread run, after those that wait for their turn."""
        thread.process.threads.append(thread)
        self.threads[thread.tid] = thread
        self._ready.append(thread)

    # -- running

    def run(self, deadline: int | None) -> bool:
        """Run until virtual time `deadline` or until `interrupt`; False when the first process has ended.

        Raises `emu.guest.base.GuestError`.
        """
        assert self.first is not None
        self.interrupted = False
        while self.first.alive:
            if self.interrupted or (deadline is not None and self.clock.now() >= deadline):
                return True
            self._ring_alarms()
            thread = self._next()
            if thread is None:
                self._idle(deadline)
            else:
                self._run(thread, deadline)
        return False

    def give_way(self) -> None:
        """End the turn of the thread that runs."""
        self._turn_end = 0

    def wall(self) -> int:
        """Return virtual nanoseconds since 1970."""
        return EPOCH + self.clock.now()

    def interrupt(self) -> None:
        """Make the run under way return soon."""
        self.interrupted = True
        self.engine.stop()

    def _next(self) -> Thread | None:
        """Return the thread whose turn it is."""
        for thread in list(self.threads.values()):
            if thread.life is Life.BLOCKED and self._may_wake(thread):
                thread.life = Life.RUNNABLE
                self._ready.append(thread)
        current = self.current
        if current is not None and current.life is Life.RUNNABLE and current.process.alive:
            if self.engine.instructions < self._turn_end or not self._ready or self._ready[0] is current:
                if current in self._ready:
                    self._ready.remove(current)
                if self.engine.instructions >= self._turn_end:
                    self._begin_turn()
                return current
            if current not in self._ready:
                self._ready.append(current)
        while self._ready:
            thread = self._ready.popleft()
            if thread.life is Life.RUNNABLE:
                self._begin_turn()
                return thread
        return None

    def _begin_turn(self) -> None:
        self._turn_end = self.engine.instructions + TURN

    def _may_wake(self, thread: Thread) -> bool:
        wait = thread.wait
        if wait is None or (self.delivery.has_work(thread) and not wait.uninterruptible):
            return True
        return wait.ready() or (wait.deadline is not None and self.clock.now() >= wait.deadline)

    def _ring_alarms(self) -> None:
        now = self.clock.now()
        for process in list(self.processes.values()):
            if process.alarm is not None and now >= process.alarm and process.alive:
                process.alarm = process.alarm + process.alarm_interval if process.alarm_interval else None
                self.delivery.send(process, SignalInfo(Signal.SIGALRM, 0x80))

    def _deadlines(self) -> Iterable[int]:
        for thread in self.threads.values():
            if thread.life is Life.BLOCKED and thread.wait is not None and thread.wait.deadline is not None:
                yield thread.wait.deadline
        for process in self.processes.values():
            if process.alarm is not None and process.alive:
                yield process.alarm

    def _idle(self, deadline: int | None) -> None:
        """Let time pass until something happens."""
        upcoming = min(self._deadlines(), default=None)
        waits = [thread.wait for thread in self.threads.values() if thread.life is Life.BLOCKED]
        if any(wait is not None and wait.host for wait in waits):
            self._wait_for_host(None if upcoming is None else max(0, upcoming - self.clock.now()) / NANOSECONDS)
            if any(wait is not None and wait.host and wait.ready() for wait in waits) or self.interrupted:
                return
        if upcoming is None:
            if deadline is not None:
                self.clock.skip_to(deadline)
                return
            blocked = ", ".join(
                f"{thread.process.name} ({thread.tid}) in {thread.call_name or 'a stop'}"
                for thread in self.threads.values()
            )
            raise Stuck(f"every thread of the guest waits, and nothing can wake one: {blocked}")
        self.clock.skip_to(upcoming if deadline is None else min(upcoming, deadline))

    def switch(self, thread: Thread) -> None:
        """Put a thread's registers and address space on the CPU."""
        current = self.current
        if current is not thread:
            if current is not None and current.life is not Life.DEAD:
                if current.context is None:
                    current.context = self.engine.new_context()
                else:
                    self.engine.save(current.context)
            if thread.context is not None:
                self.engine.restore(thread.context)
            self.current = thread
        self._use(thread.process.space)

    def set_pc(self, thread: Thread, pc: int) -> None:
        """Move a thread that does not run."""
        register = self.isa.registers.by_name[self.isa.registers.pc]
        thread.context.reg_write(register.unicorn, pc)

    def _use(self, space: Space) -> None:
        old = getattr(self.engine.memory, "space", None)
        if old is space:
            return
        if isinstance(old, Space):
            old.flush_page = lambda _address: None
            old.flush = lambda: None
        space.flush_page = self.engine.flush_page
        space.flush = lambda: self.engine.use(space)
        self.engine.use(space)

    def _run(self, thread: Thread, deadline: int | None) -> None:
        self.switch(thread)
        if thread.call is not None and not self._serving.resume(thread):
            return
        stops = [self._turn_end + LONGEST_TURN - TURN]
        if not all(observer.may_be_interrupted(thread) for observer in self.observers):
            if self.delivery.has_work(thread):
                stops.append(self.engine.instructions + 1)  # out of there first
        elif not self.delivery.deliver(thread):
            return
        if deadline is not None:
            stops.append(self.clock.instructions_at(deadline))
        upcoming = min(self._deadlines(), default=None)
        if upcoming is not None:
            stops.append(self.clock.instructions_at(upcoming))
        before = self.engine.instructions
        fault = self.advance(thread, lambda: self.engine.run(min(stops)))
        ran = self.engine.instructions - before
        thread.ran += ran
        thread.process.ran += ran
        if fault is not None:
            self.delivery.force(thread, fault)
        elif self.take_call():
            self._turn_end -= _CALL_COST
            self._serving.serve(thread)
        elif self.engine.instructions >= self._turn_end + LONGEST_TURN - TURN:
            self._turn_end = 0

    def advance(self, thread: Thread, run: Callable[[], bool]) -> SignalInfo | None:
        """Have the CPU run the current thread by `run`, and return the fault it met, as observers leave it.

        None: it met none; `take_call` then tells whether it made a system call.  Raises
        `GuestError`.
        """
        try:
            waits = run()
        except PageFaultError as error:
            place = error.address
            if error.access is not Access.EXECUTE:
                place = fault_address(self.engine, place, error.access)
            self._fault = faults.page_fault(thread.process.space, error.access, place)
        except OutOfMemoryError as error:
            raise GuestError(f"{error}; {thread.process.name} (pid {thread.process.pid}) asked for more") from None
        except GuestCrashError as error:
            self._report(f"{thread.process.name} (pid {thread.process.pid}): {error}")
            self._fault = SignalInfo(Signal.SIGILL, 1, address=error.pc)
        else:
            if waits:  # which only a kernel may
                self.engine.pc -= len(self.isa.traps.wait)
                self._fault = SignalInfo(Signal.SIGSEGV, 0x80, address=0)
        fault, self._fault = self._fault, None
        if fault is not None:
            for observer in self.observers:
                fault = observer.faulted(thread, fault)
        return fault

    def numbered(self, inode: Inode) -> Inode:
        """Return an inode with its number; inodes have theirs in the order in which they are asked for it."""
        inode.number = inode.number or next(self._inode_numbers)
        return inode

    def take_call(self) -> bool:
        """Tell, once, whether the CPU's latest run ended in a system call."""
        called, self._called = self._called, False
        return called

    # -- traps

    def _breakpoint(self, address: int) -> int:
        answer = self.traps.invop(address, self.frame)
        if not answer:
            self.engine.pc = address + self.isa.traps.pc_after
            return self.raise_fault(SignalInfo(Signal.SIGTRAP, 0x80, address=address))
        return HANDLED if answer == CARRIED_OUT else answer

    def _trap(self, number: int) -> int:
        if any(claims(number, self.engine.pc) for claims in self.exceptions):
            return HANDLED
        return self.raise_fault(faults.exception(self.isa, number, self.engine.pc))

    def raise_fault(self, fault: SignalInfo) -> int:
        """End the run, and send the thread that ran a signal it cannot refuse; from a trap."""
        self._fault = fault
        self.engine.leave()
        return HANDLED

    def raise_bad_address(self, address: int) -> int:
        """Send the thread that ran what a CPU's own access to a bad address would have come to; from a trap."""
        assert self.current is not None
        space = self.current.process.space
        access = Access.READ if space.reach(address, Access.READ) is None else Access.WRITE
        return self.raise_fault(faults.page_fault(space, access, address))

    def _on_system_call(self) -> None:
        self._called = True
        self.engine.leave()
