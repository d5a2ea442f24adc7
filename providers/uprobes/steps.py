"""Single steps of uprobes: a copy of the displaced instruction runs in a slot, and is put right.

On x86 the trap flag stops the CPU behind the copy; elsewhere a breakpoint stands there.

Source: Linux 6.12 kernel/events/uprobes.c (pre_ssout, handle_singlestep), arch/x86/kernel/uprobes.c
(arch_uprobe_pre_xol, arch_uprobe_post_xol, arch_uprobe_abort_xol).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.displaced import Stepped
from emu.guest.linux.process import LinuxObserver
from emu.isa.linux_signals import SignalInfo
from providers.uprobes.port import Port
from providers.uprobes.records import Installed, Step, Uprobe, WatchedSpace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process import Process, Thread

_TRAP_FLAG: Final = 0x100
# Number of x86's exception after a single step.
_DEBUG: Final = 1


class Steps(LinuxObserver):
    """The threads of a guest that step; `put` gives up a reference to a probe."""

    def __init__(self, kernel: Kernel, port: Port, put: Callable[[Uprobe], None]) -> None:
        self._kernel = kernel
        self._engine = kernel.engine
        self._port = port
        self._put = put
        self._steps: dict[Thread, Step] = {}
        kernel.exceptions.append(self._exception)
        kernel.watch(self)

    def use(self, slot: int) -> bool:
        """Return whether a thread steps in a slot."""
        return any(step.slot == slot for step in self._steps.values())

    def begin(self, thread: Thread, space: WatchedSpace, installed: Installed, address: int, move: Stepped) -> None:
        """Run the copy in a slot, for one instruction (pre_ssout)."""
        engine = self._engine
        slot = installed.slot
        if not slot:
            slot = installed.slot = space.slots.take()
            space.slots.fill(slot, move.code + self._port.step_trap)
        installed.probe.references += 1
        saved = flags = 0
        if move.scratch:
            saved = engine.read_register(move.scratch)
            engine.write_register(move.scratch, address + move.length)
        engine.pc = slot
        if not self._port.step_trap:
            flags = engine.read_register(self._kernel.isa.traps.flags)
            engine.write_register(self._kernel.isa.traps.flags, flags | _TRAP_FLAG)
        engine.discount(1)  # the breakpoint: the copy will be counted
        self._steps[thread] = Step(space, installed, address, slot, move, saved, flags)

    def ended_at(self, thread: Thread, address: int) -> bool:
        """Take the breakpoint behind a copy; False: it is not that."""
        step = self._steps.get(thread)
        if step is None or address != step.slot + step.move.length:
            return False
        self._engine.discount(1)
        self._engine.pc = step.address + step.move.length
        self._end(thread, step)
        return True

    def _exception(self, number: int, _pc: int) -> bool:
        """Take x86's debug exception after a step; False: it is not ours."""
        thread = self._kernel.current
        step = self._steps.get(thread) if thread is not None else None
        if thread is None or step is None or self._port.step_trap or number != _DEBUG:
            return False
        engine, move, word = self._engine, step.move, self._kernel.isa.word
        if not move.pops_flags:  # else the flag is the program's own
            self._restore_trap_flag(step)
        if not move.absolute:
            engine.pc += step.address - step.slot
        if move.pushes_flags and not step.flags & _TRAP_FLAG:
            # Linux leaves the flag in what was pushed: a popf would trap then.
            sp = engine.read_register(self._kernel.isa.registers.sp)
            engine.store(sp, 2, engine.load(sp, 2) & ~_TRAP_FLAG)  # two bytes: all that a 16-bit pushf stores
        if move.calls:
            engine.store(engine.read_register(self._kernel.isa.registers.sp), word, step.address + move.length)
        self._end(thread, step)
        return True

    def _restore_trap_flag(self, step: Step) -> None:
        """Make the trap flag what it was before the step."""
        name = self._kernel.isa.traps.flags
        flags = self._engine.read_register(name)
        self._engine.write_register(name, flags & ~_TRAP_FLAG | step.flags & _TRAP_FLAG)

    def _end(self, thread: Thread, step: Step) -> None:
        del self._steps[thread]
        if step.move.scratch:
            self._engine.write_register(step.move.scratch, step.saved)
        self._put(step.installed.probe)

    # -- what happens to threads

    def faulted(self, thread: Thread, info: SignalInfo) -> SignalInfo:
        """Abort a step whose copy faulted (arch_uprobe_abort_xol): the probe is hit again."""
        step, at = self._steps.get(thread), self._engine.pc
        if step is None or not step.slot <= at < step.slot + self._port.slot:
            return info
        if not self._port.step_trap:
            self._restore_trap_flag(step)
        self._end(thread, step)
        self._engine.pc = step.address
        return SignalInfo(info.number, info.code, address=step.address) if info.address == at else info

    def may_be_interrupted(self, thread: Thread) -> bool:
        """Make signals wait while a thread steps (uprobe_deny_signal)."""
        return thread not in self._steps

    def system_call(self, thread: Thread, name: str, arguments: Sequence[int]) -> None:
        """End the step of a system call: Unicorn does not trap after it."""
        del name, arguments
        step = self._steps.get(thread)
        if step is not None and not self._port.step_trap and self._engine.pc == step.slot + step.move.length:
            self._exception(_DEBUG, 0)

    def before_exec(self, process: Process) -> None:
        """Forget the steps of a process whose memory goes away."""
        for thread in process.threads:
            self.thread_ended(thread)

    def exited(self, process: Process) -> None:
        """Forget the steps of a process that has ended."""
        self.before_exec(process)

    def thread_ended(self, thread: Thread) -> None:
        """Drop the step of a thread."""
        step = self._steps.pop(thread, None)
        if step is not None:
            self._put(step.installed.probe)
