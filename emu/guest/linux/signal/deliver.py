"""Signals are delivered: to handlers on the program's own stack, or by what they do without one.

Source: Linux kernel/signal.c, arch/*/kernel/signal.c.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from emu.engine.engine import Engine
from emu.guest.linux.errno import EINTR
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.process.exit import Endings
from emu.guest.linux.process.process import Action, Thread
from emu.guest.linux.signal.frame import SignalFrames
from emu.guest.linux.signal.pending_signals import bit, is_ignored, next_of, next_signal
from emu.guest.linux.signal.send import Sending
from emu.guest.linux.time.timer import Timers
from emu.isa import disassembly
from emu.isa.extensions import needed
from emu.isa.linux_signals import (
    CORE,
    DEFAULT,
    ILL_ILLOPC,
    ILL_ILLOPN,
    SA_NODEFER,
    SA_ONSTACK,
    SA_RESETHAND,
    SA_RESTART,
    SA_RESTORER,
    STOPPING,
    UNBLOCKABLE,
    Signal,
    SignalInfo,
)
from emu.support.words import BadAddressError

# System calls that a handler interrupts, whatever SA_RESTART says (signal(7)).
_NEVER_RESTARTED: Final = frozenset(
    """
    nanosleep clock_nanosleep poll ppoll select pselect6 pause rt_sigsuspend rt_sigtimedwait epoll_wait epoll_pwait
    sigsuspend semop semtimedop semtimedop_time64 msgsnd msgrcv ipc
    """.split()
)
_REAL_TIME: Final = 32
_CORE_DUMPED: Final = 0x80
# Bytes of the longest instruction.
_LONGEST: Final = 16


class Delivery:
    """Delivers the signals of one kernel; `report` is called for a program that its CPU refused."""

    def __init__(
        self,
        engine: Engine,
        sending: Sending,
        timers: Timers,
        endings: Endings,
        report: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._engine = engine
        self._isa = engine.isa
        self._sending = sending
        self._timers = timers
        self._endings = endings
        self._report = report
        self._frames = SignalFrames(engine)
        self._interrupted: dict[Thread, bool] = {}
        """Threads whose system call was interrupted, and whether it is made again in any case."""

    def take(self, thread: Thread, wanted: int) -> SignalInfo | None:
        """Take the lowest signal of a set off its queue, for sigwait; None if there is none."""
        found = next_of(thread, wanted)
        return None if found is None else self._dequeue(thread, *found)

    def _dequeue(self, thread: Thread, queue: deque[SignalInfo], info: SignalInfo) -> SignalInfo:
        """Take a signal off its queue, and let its timer count on."""
        queue.remove(info)
        return self._timers.taken(thread.process, info)

    def interrupted(self, thread: Thread, *, always: bool = False) -> int:
        """Note that a system call was interrupted, and return its result if it is not restarted.

        With `always` it is restarted whatever the handler's flags say.
        """
        self._interrupted[thread] = always
        return -EINTR

    def deliver(self, thread: Thread) -> bool:
        """Deliver what waits to the current thread.

        False if it cannot continue, because it has ended or is stopped.
        """
        found = next_signal(thread)
        if found is None and thread not in self._interrupted and thread.saved_mask is None:
            return True
        interrupted = thread in self._interrupted
        always = self._interrupted.pop(thread, False)
        while (found := next_signal(thread)) is not None:
            info = self._dequeue(thread, *found)
            action = thread.process.signals.actions[info.number]
            if is_ignored(action, info.number):
                continue
            if action.handler == DEFAULT:
                if info.number in STOPPING:
                    self._sending.stop(thread.process, info.number)
                    return False
                if info.number == Signal.SIGILL and info.code in {ILL_ILLOPC, ILL_ILLOPN}:
                    self._report(self._refused(thread))
                core = _CORE_DUMPED if info.number in CORE else 0
                self._endings.exit_process(thread.process, info.number | core)
                return False
            if interrupted:
                if always or (action.flags & SA_RESTART and thread.call_name not in _NEVER_RESTARTED):
                    self._make_again(thread)
                interrupted = False
            if not self._enter(thread, action, info):
                self._endings.exit_process(thread.process, Signal.SIGSEGV | _CORE_DUMPED)
                return False
        if interrupted:
            self._make_again(thread)
        if thread.saved_mask is not None:
            thread.mask, thread.saved_mask = thread.saved_mask, None
        return True

    def _make_again(self, thread: Thread) -> None:
        """Put the CPU back on the system call that was interrupted."""
        assert thread.restart is not None
        engine, abi = self._engine, self._isa.linux
        number, first = thread.restart
        engine.pc -= len(abi.system_call)
        engine.write_register(abi.call_result, first)
        engine.write_register(abi.call_number, number)

    def _refused(self, thread: Thread) -> str:
        """Return which instruction the CPU has refused, and the extension that it needs."""
        process, at = thread.process, self._engine.pc
        area = process.space.area_at(at)
        try:
            if area is not None and isinstance(area.backing, RegularFile):  # memory may have a breakpoint there
                code = area.backing.read(at - area.start + area.offset, _LONGEST)
            else:
                code = process.space.peek(at, _LONGEST)
        except BadAddressError:
            code = b""
        found = disassembly.first(self._isa, code, at)
        shown = found.text if found else code[: self._isa.instruction_length(code) or 4].hex(" ") or "no memory"
        extension = needed(self._isa.lacks, code)
        lacks = f" needs {extension}, which the guest's CPU lacks (docs/guests.md)" if extension else ""
        return f"{process.name} (pid {process.pid}): illegal instruction at {at:#x}: {shown}{lacks}"

    # -- frames

    def _enter(self, thread: Thread, action: Action, info: SignalInfo) -> bool:
        """Put a frame on the stack and the CPU into the handler; False if the stack is too small."""
        engine = self._engine
        isa, layout = self._isa, self._isa.linux.frame
        restorer = action.restorer if action.flags & SA_RESTORER else thread.process.space.restorer
        try:
            frame = self._frames.push(thread, info, restorer, alternate=bool(action.flags & SA_ONSTACK))
        except BadAddressError:
            return False
        registers = {isa.registers.sp: frame, **layout.on_entry}
        if layout.record is not None:
            registers[isa.registers.fp] = frame + layout.record
        if isa.registers.link is not None:
            registers[isa.registers.link] = restorer
        registers |= zip(isa.calling.arguments, self._frames.arguments(frame, info), strict=False)
        if layout.cleared:
            registers[isa.traps.flags] = engine.read_register(isa.traps.flags) & ~layout.cleared
        for name, value in registers.items():
            engine.write_register(name, value)
        engine.pc = action.handler
        thread.saved_mask = None
        thread.mask |= action.mask | (0 if action.flags & SA_NODEFER else bit(info.number))
        thread.mask &= ~UNBLOCKABLE
        if action.flags & SA_RESETHAND:
            action.handler = DEFAULT
        return True

    def leave(self, thread: Thread, popped: int = 1) -> None:
        """Go back to what a signal interrupted (rt_sigreturn).  Raises `BadAddressError`.

        `popped` words of a frame that begins with a return address are off the stack.
        """
        frame = self._engine.read_register(self._isa.registers.sp)
        if self._isa.linux.frame.return_address is not None:
            frame -= popped * self._isa.word
        thread.mask = self._frames.pop(thread, frame) & ~UNBLOCKABLE
