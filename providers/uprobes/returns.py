"""Return probes of uprobes: the return address is replaced by that of a breakpoint.

Returns are not searched in the code.  They are counted: each entry adds one to its thread's list,
and a return to the trampoline belongs to the latest one.  So a return probe needs no disassembly,
and works with tail calls and jumps through registers.  Only what leaves frames without a return
disturbs the list (longjmp, exceptions): their entries are dropped when the stack pointer shows that
the frame is gone.  docs/fidelity.md says which programs a return probe breaks.

`providers.uprobes.native` does the same in machine code.

Source: Linux 6.12 kernel/events/uprobes.c (prepare_uretprobe, uprobe_handle_trampoline),
arch_uretprobe_is_alive() of each ISA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from emu.displaced.frame import Frame
from emu.guest.processes import EXECUTED
from emu.isa.linux_signals import SI_KERNEL, Signal, SignalInfo
from emu.support.words import BadAddressError
from providers.uprobes.port import Port
from providers.uprobes.records import Uprobe, WatchedSpace
from providers.uprobes.tasks import MAX_DEPTH, Task, Tasks

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process.process import Thread


class Returns:
    """The pending returns of a guest's threads.

    `probe(address)` returns the probe whose words are at an address, `put(probe)` gives up a
    reference to it.
    """

    def __init__(
        self, kernel: Kernel, port: Port, tasks: Tasks, probe: Callable[[int], Uprobe], put: Callable[[Uprobe], None]
    ) -> None:
        self._kernel = kernel
        self._engine = kernel.engine
        self._port = port
        self._tasks = tasks
        self._probe = probe
        self._put = put

    def forget(self, task: Task) -> None:
        """Drop the returns of a thread that has ended."""
        while task.words.depth:
            self._drop(task)

    def copy(self, maker: Thread, thread: Thread) -> None:
        """Give a forked thread the returns of its parent, because it has a copy of the stack."""
        made_by = self._tasks.known(maker)
        if made_by is None:
            return
        task = self._tasks.of(thread)
        for one in made_by.pending():
            self._probe(one.probe).references += 1
            task.push(one.probe, one.function, one.stack, one.original, one.chained)

    def prepare(self, space: WatchedSpace) -> int:
        """Return the address of a space's trampoline, which is made if there is none yet."""
        if not space.words.trampoline:
            space.words.trampoline = space.slots.take()
            space.slots.fill(space.words.trampoline, self._port.breakpoint)
        return space.words.trampoline

    def hijack(self, thread: Thread, space: WatchedSpace, probe: Uprobe, address: int) -> None:
        """Make the function return to the trampoline (prepare_uretprobe)."""
        task = self._tasks.of(thread)
        if task.words.depth >= MAX_DEPTH:
            return
        trampoline = self.prepare(space)
        engine, registers, word = self._engine, self._kernel.isa.registers, self._kernel.isa.word
        sp = engine.read_register(registers.sp)
        try:
            original = engine.read_register(registers.link) if registers.link else engine.load(sp, word)
            chained = original == trampoline
            self._drop_dead(task, sp, chained=chained)
            if chained and not task.words.depth:
                return
            if registers.link:
                engine.write_register(registers.link, trampoline)
            else:
                engine.store(sp, word, trampoline)
        except BadAddressError:
            return
        if chained:  # a tail call: its return is also that of its caller
            original = task.last.original
        probe.references += 1
        task.push(probe.words.address, address, sp, original, chained)

    def _drop(self, task: Task) -> None:
        self._put(self._probe(task.pop().probe))

    def _drop_dead(self, task: Task, sp: int, *, chained: bool) -> None:
        """Drop the returns whose frames were left by longjmp."""
        # Only now, at the next entry, because a longjmp is not noticed when it happens.  A tail call reuses the frame
        # of its caller, so there an equal stack pointer means that the frame exists.
        while task.words.depth and not (sp <= task.last.stack if chained else sp < task.last.stack):
            self._drop(task)

    def returned(self, thread: Thread, frame: Frame) -> int:
        """Take a return to the trampoline (uprobe_handle_trampoline)."""
        engine = self._engine
        task = self._tasks.of(thread)
        engine.discount(1)  # the trampoline's breakpoint is not counted as the program's
        if not task.words.depth:
            self._kernel.raise_fault(SignalInfo(Signal.SIGILL, SI_KERNEL, address=engine.pc))
            return EXECUTED
        left = self._callers(task)
        while not self._is_pending(task, left):
            while task.words.depth > left:
                self._drop(task)
            left = self._callers(task)
        # Before the handlers, because their pc is the address where the program continues, as on a real kernel.
        engine.pc = task.last.original
        while task.words.depth > left:
            one = task.pop()
            probe = self._probe(one.probe)
            for consumer in tuple(probe.consumers):
                if consumer.ret_handler is not None:
                    consumer.ret_handler(one.function, frame)
            self._put(probe)
        return EXECUTED

    @staticmethod
    def _callers(task: Task) -> int:
        """Return how many returns are left after the next one (find_next_ret_chain).

        A tail call's return is also that of its caller: one `ret` ends both.
        """
        left = task.words.depth - 1
        while task.at(left).chained:
            left -= 1
        return left

    def _is_pending(self, task: Task, depth: int) -> bool:
        """Return whether the frame of a task's `depth`-th return exists, when a callee has returned.

        With depth 0 the callee's is the only one.  The callee's own frame is not asked: `ret n` leaves
        the stack pointer above it (arch_uretprobe_is_alive, RP_CHECK_RET).
        """
        if not depth:
            return True
        sp, stack = self._engine.read_register(self._kernel.isa.registers.sp), task.at(depth - 1).stack
        return sp < stack if self._kernel.isa.registers.link else sp <= stack
