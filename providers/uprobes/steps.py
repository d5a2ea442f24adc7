"""Single steps of uprobes: a copy of the instruction runs in a slot; its effects are corrected.

On x86 the trap flag stops the CPU after the copy; elsewhere a breakpoint follows the copy.
`providers.uprobes.native` does the same in machine code.

Source: Linux 6.12 kernel/events/uprobes.c (pre_ssout, handle_singlestep), arch/x86/kernel/uprobes.c
(arch_uprobe_pre_xol, arch_uprobe_post_xol, arch_uprobe_abort_xol).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.guest.linux.process.process import LinuxObserver
from emu.isa.linux_signals import Signal, SignalInfo
from providers.uprobes.port import Port
from providers.uprobes.records import Installed, InstalledWords, TaskWords, Uprobe, WatchedSpace
from providers.uprobes.tasks import Task, Tasks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import Process, Thread

TRAP_FLAG: Final = 0x100
# Number of x86's exception after a single step.
DEBUG: Final = 1


class Steps(LinuxObserver):
    """The threads of a guest that step; `put` gives up a reference to a probe."""

    def __init__(self, kernel: Kernel, port: Port, tasks: Tasks, put: Callable[[Uprobe], None]) -> None:
        self._kernel = kernel
        self._engine = kernel.engine
        self._port = port
        self._tasks = tasks
        self._put = put
        self._copies: dict[int, Installed] = {}
        """The steps that have a copy in a slot, by the address of their words."""
        self._ends: dict[tuple[WatchedSpace, int], Installed] = {}
        """The same by the address behind the copy."""
        kernel.exceptions.append(self._exception)
        kernel.watch(self)

    def use(self, installed: Installed) -> bool:
        """Return whether a thread steps a copy."""
        return installed.words.address in self._tasks.steps()

    def forget(self, installed: Installed) -> None:
        """Forget a copy, unless a thread steps it."""
        if not self.use(installed) and self._copies.pop(installed.words.address, None) is not None:
            del self._ends[installed.space, installed.words.slot + installed.move.length]

    def behind(self, address: int, space: WatchedSpace) -> Installed | None:
        """Return the record whose copy's step ends at an address; None: there is none."""
        return self._ends.get((space, address))

    def begin(self, thread: Thread, installed: Installed) -> None:
        """Run the copy in a slot, for one instruction (pre_ssout)."""
        engine, task, move, words = self._engine, self._tasks.of(thread).words, installed.move, installed.words
        if not words.slot:
            self._prepare(installed)
        installed.probe.references += 1
        if move.scratch:
            task.saved = engine.read_register(move.scratch)
            engine.write_register(move.scratch, words.after)
        engine.pc = words.slot
        if not self._port.step_trap:
            flags = engine.read_register(self._kernel.isa.traps.flags)
            task.flags = flags & TRAP_FLAG
            task.repetitions = self._repetitions(words)
            engine.write_register(self._kernel.isa.traps.flags, flags | TRAP_FLAG)
        engine.discount(1)  # subtract the breakpoint: the copy will be counted
        task.step = words.address

    def _prepare(self, installed: Installed) -> None:
        """Put the copy into a slot, and return its decision."""
        move, words, slots = installed.move, installed.words, installed.space.slots
        words.slot = slots.take()
        slots.fill(words.slot, move.code + self._port.step_trap)
        words.after = installed.tracepoint.address + move.length
        words.absolute, words.calls = move.absolute, move.calls
        words.pushes_flags, words.pops_flags = move.pushes_flags, move.pops_flags
        if move.scratch:
            words.scratch = self._engine.tracepoints.temporary(move.scratch)
        repetition = self._kernel.isa.repetition(move.code)
        if repetition is not None:
            counter = self._kernel.isa.registers.counter
            assert counter is not None, "an instruction repeats without a counter"
            words.counter = self._engine.tracepoints.temporary(counter)
            words.mask, words.compares = repetition.mask, repetition.condition is not None
        self._copies[words.address] = installed
        self._ends[installed.space, words.slot + move.length] = installed

    def _stepped(self, thread: Thread | None) -> tuple[Installed, Task] | None:
        """Return the record of a thread's step, and its task; None: it does not step."""
        task = self._tasks.known(thread) if thread is not None else None
        return (self._copies[task.words.step], task) if task is not None and task.words.step else None

    def ended_at(self, thread: Thread, address: int) -> bool:
        """Handle the breakpoint after a copy; False: it is another one."""
        found = self._stepped(thread)
        if found is None:
            return False
        installed, task = found
        if address != installed.words.slot + installed.move.length:
            return False
        self._engine.discount(1)
        self._engine.pc = installed.words.after
        self._end(installed, task)
        return True

    def _exception(self, number: int, _pc: int) -> bool:
        """Handle x86's debug exception after a step; False: it has another cause."""
        found = self._stepped(self._kernel.current)
        if found is None or self._port.step_trap or number != DEBUG:
            return False
        installed, task = found
        engine, move, word, words = self._engine, installed.move, self._kernel.isa.word, installed.words
        self._count(installed, task.words)
        if not move.pops_flags:  # otherwise the flag is the program's own
            self._restore_trap_flag(task)
        if not move.absolute:
            engine.pc += installed.tracepoint.address - words.slot
        if move.pushes_flags and not task.words.flags:
            # Linux leaves the flag in the pushed word: a popf would trap then.
            sp = engine.read_register(self._kernel.isa.registers.sp)
            engine.store(sp, 2, engine.load(sp, 2) & ~TRAP_FLAG)  # two bytes, because a 16-bit pushf stores no more
        if move.calls:
            engine.store(engine.read_register(self._kernel.isa.registers.sp), word, words.after)
        self._end(installed, task)
        if task.words.flags:
            thread = self._kernel.current
            assert thread is not None
            self._kernel.sending.send_thread(thread, SignalInfo(Signal.SIGTRAP))
            engine.running.leave()
        return True

    def _repetitions(self, words: InstalledWords) -> int:
        """Return how many repetitions a string instruction still has, 0 for another instruction."""
        counter = self._kernel.isa.registers.counter
        return self._engine.read_register(counter) & words.mask if counter and words.counter else 0

    def _count(self, installed: Installed, task: TaskWords) -> None:
        """Count a copy as often as the instruction counts where nothing steps it.

        A string instruction that repeats begins anew each time, and once more to find no repetition
        left; a step ends with the last repetition.
        """
        engine, isa, words = self._engine, self._kernel.isa, installed.words
        if engine.pc == words.slot:  # it leads to itself: the engine has not counted it, as if it had not run
            engine.discount(-1)
        elif task.repetitions and not self._repetitions(words):
            repetition = isa.repetition(installed.move.code)
            assert repetition is not None, "it has repeated"
            assert isa.condition is not None, "an ISA whose instructions repeat has flags"
            condition = repetition.condition
            if condition is None or isa.condition(condition, engine.read_register(isa.traps.flags)):
                engine.discount(-1)

    def _restore_trap_flag(self, task: Task) -> None:
        """Make the trap flag what it was before the step."""
        name = self._kernel.isa.traps.flags
        flags = self._engine.read_register(name)
        self._engine.write_register(name, flags & ~TRAP_FLAG | task.words.flags)

    def _end(self, installed: Installed, task: Task) -> None:
        task.words.step = 0
        if installed.move.scratch:
            self._engine.write_register(installed.move.scratch, task.words.saved)
        self._put(installed.probe)

    # -- events of threads

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """Abort a step whose copy faulted (arch_uprobe_abort_xol): the probe is hit again."""
        found, at = self._stepped(thread), self._engine.pc
        if found is None:
            return info
        installed, task = found
        slot, address = installed.words.slot, installed.tracepoint.address
        if not slot <= at < slot + self._port.slot:
            return info
        if not self._port.step_trap:
            self._restore_trap_flag(task)
        self._end(installed, task)
        self._engine.pc = address
        return SignalInfo(info.number, info.code, address=address) if info.address == at else info

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Make signals wait while a thread steps (uprobe_deny_signal)."""
        return not self._tasks.step(thread)

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """End the step of a system call: Unicorn does not trap after it."""
        del name, arguments
        found = self._stepped(thread)
        if found is None or self._port.step_trap:
            return
        installed, _ = found
        if self._engine.pc == installed.words.slot + installed.move.length:
            self._exception(DEBUG, 0)

    def before_exec(self, process: Process) -> None:
        """Forget the steps of a process whose memory is about to be unmapped."""
        for thread in process.threads:
            self.thread_ended(thread)

    def exited(self, process: Process) -> None:
        """Forget the steps of a process that has ended."""
        self.before_exec(process)

    def thread_ended(self, thread: Thread) -> None:
        """Drop the step of a thread."""
        found = self._stepped(thread)
        if found is not None:
            installed, task = found
            task.words.step = 0
            self._put(installed.probe)
