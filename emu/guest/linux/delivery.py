"""Signals: sent, kept, and delivered to handlers on the program's own stack.

Source: Linux kernel/signal.c, arch/*/kernel/signal.c.  What a frame on the stack does not hold, the
vector registers, is kept beside the process until the handler returns.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import TYPE_CHECKING, Final

from emu.bad_address import BadAddressError
from emu.guest.linux.errno import EINTR
from emu.guest.linux.process import Action, Life, Process, Thread
from emu.isa.linux_signals import (
    CLD_CONTINUED,
    CLD_STOPPED,
    CORE,
    DEFAULT,
    IGNORE,
    IGNORED,
    SA_NOCLDSTOP,
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

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel

# System calls that a handler interrupts, whatever SA_RESTART says (signal(7)).
_NEVER_RESTARTED: Final = frozenset(
    """
    nanosleep clock_nanosleep poll ppoll select pselect6 pause rt_sigsuspend rt_sigtimedwait epoll_wait epoll_pwait
    sigsuspend semop semtimedop semtimedop_time64 msgsnd msgrcv ipc
    """.split()
)
# uc_stack by the bytes of a word.
_STACK: Final = {8: struct.Struct("<QixxxxQ"), 4: struct.Struct("<IiI")}
_FRAMES_KEPT: Final = 64
_REAL_TIME: Final = 32
_CORE_DUMPED: Final = 0x80


def bit(number: int) -> int:
    """Return a signal's bit in a mask."""
    return 1 << number - 1


class Delivery:
    """The signals of one kernel."""

    def __init__(self, kernel: Kernel) -> None:
        self._kernel = kernel
        self._interrupted: dict[Thread, bool] = {}
        """Threads whose system call was interrupted, and whether it is made again in any case."""

    # -- sending

    def send(self, process: Process, info: SignalInfo) -> None:
        """Send a signal to a process: some thread that does not block it will take it."""
        if process.alive and self._prepare(process, info.number):
            self._queue(process.pending, info)
            for thread in process.threads:
                self._kernel.schedule.blocked.signalled(thread)

    def send_thread(self, thread: Thread, info: SignalInfo) -> None:
        """Send a signal to one thread."""
        if thread.life is not Life.DEAD and self._prepare(thread.process, info.number):
            self._queue(thread.pending, info)
            self._kernel.schedule.blocked.signalled(thread)

    def _prepare(self, process: Process, number: int) -> bool:
        """Continue the stopped threads if the signal does so; return whether it becomes pending."""
        if number in {Signal.SIGCONT, Signal.SIGKILL} and process.stopped_by:
            process.stopped_by = 0
            process.continued = number == Signal.SIGCONT
            for thread in process.threads:
                if thread.call is not None and thread.wait is not None:
                    self._kernel.schedule.blocked.add(thread, thread.wait)
                else:
                    thread.life = Life.RUNNABLE
                    self._kernel.schedule.make_ready(thread)
            self._changed(process)
            if number == Signal.SIGCONT:
                self._tell_parent(process, CLD_CONTINUED, number)
        if number == Signal.SIGCONT:
            self._forget(process, STOPPING)
        elif number in STOPPING:
            self._forget(process, {Signal.SIGCONT})
        if all(thread.mask & bit(number) for thread in process.threads):
            return True
        return not self._is_ignored(process.signals.actions[number], number)

    @staticmethod
    def _forget(process: Process, numbers: frozenset[Signal] | set[Signal]) -> None:
        for queue in (process.pending, *(thread.pending for thread in process.threads)):
            for info in [info for info in queue if info.number in numbers]:
                queue.remove(info)

    @staticmethod
    def _is_ignored(action: Action, number: int) -> bool:
        return action.handler == IGNORE or (action.handler == DEFAULT and number in IGNORED)

    @staticmethod
    def _queue(pending: deque[SignalInfo], info: SignalInfo) -> None:
        if info.number >= _REAL_TIME or all(other.number != info.number for other in pending):
            pending.append(info)

    def force(self, thread: Thread, info: SignalInfo) -> None:
        """Send a thread the signal of its own fault, which it cannot block or ignore."""
        action = thread.process.signals.actions[info.number]
        if action.handler == IGNORE or thread.mask & bit(info.number):
            action.handler = DEFAULT
            thread.mask &= ~bit(info.number)
        thread.pending.appendleft(info)
        self._kernel.schedule.blocked.signalled(thread)

    # -- delivering

    def has_work(self, thread: Thread) -> bool:
        """Return whether a signal waits that this thread would take."""
        return bool(thread.pending or thread.process.pending) and self._find(thread) is not None

    def _find(self, thread: Thread) -> tuple[deque[SignalInfo], SignalInfo] | None:
        """Return the next signal, and the queue it waits in.

        The thread's own signals come first, then the lowest number.
        """
        for queue in (thread.pending, thread.process.pending):
            open_ones = [info for info in queue if not thread.mask & bit(info.number) & ~UNBLOCKABLE]
            if open_ones:
                return queue, min(open_ones, key=lambda info: info.number)
        return None

    def take(self, thread: Thread, wanted: int) -> SignalInfo | None:
        """Take the lowest signal of a set off its queue, for sigwait; None if there is none."""
        for queue in (thread.pending, thread.process.pending):
            chosen = min(
                (info for info in queue if wanted & bit(info.number)), key=lambda info: info.number, default=None
            )
            if chosen is not None:
                return self._dequeue(thread, queue, chosen)
        return None

    @staticmethod
    def _dequeue(thread: Thread, queue: deque[SignalInfo], info: SignalInfo) -> SignalInfo:
        """Take a signal off its queue, and let its timer count on."""
        queue.remove(info)
        timers = thread.process.timers
        return info if timers is None else timers.taken(info)

    def interrupted(self, thread: Thread, *, always: bool = False) -> int:
        """Note that a system call was interrupted, and return its result if it is not restarted.

        With `always` it is restarted whatever the handler's flags say.
        """
        self._interrupted[thread] = always
        return -EINTR

    def deliver(self, thread: Thread) -> bool:
        """Deliver what waits to the current thread.

        False if it cannot go on: it has ended, or is stopped.
        """
        found = self._find(thread)
        if found is None and thread not in self._interrupted and thread.saved_mask is None:
            return True
        interrupted = thread in self._interrupted
        always = self._interrupted.pop(thread, False)
        while (found := self._find(thread)) is not None:
            info = self._dequeue(thread, *found)
            action = thread.process.signals.actions[info.number]
            if self._is_ignored(action, info.number):
                continue
            if action.handler == DEFAULT:
                if info.number in STOPPING:
                    self._stop(thread.process, info.number)
                    return False
                core = _CORE_DUMPED if info.number in CORE else 0
                self._kernel.endings.exit_process(thread.process, info.number | core)
                return False
            if interrupted:
                if always or (action.flags & SA_RESTART and thread.call_name not in _NEVER_RESTARTED):
                    self._make_again(thread)
                interrupted = False
            if not self._enter(thread, action, info):
                self._kernel.endings.exit_process(thread.process, Signal.SIGSEGV | _CORE_DUMPED)
                return False
        if interrupted:
            self._make_again(thread)
        if thread.saved_mask is not None:
            thread.mask, thread.saved_mask = thread.saved_mask, None
        return True

    def _make_again(self, thread: Thread) -> None:
        """Put the CPU back on the system call that was interrupted."""
        assert thread.restart is not None
        engine, abi = self._kernel.engine, self._kernel.abi
        number, first = thread.restart
        engine.pc -= len(abi.system_call)
        engine.write_register(abi.call_result, first)
        engine.write_register(abi.call_number, number)

    def _stop(self, process: Process, number: int) -> None:
        process.stopped_by = number
        process.reported_stop = False
        for thread in process.threads:
            thread.life = Life.STOPPED
        self._changed(process)
        self._tell_parent(process, CLD_STOPPED, number)

    def _changed(self, process: Process) -> None:
        """Let a parent look that waits for its children."""
        self._kernel.schedule.blocked.changed(process.parent)

    def _tell_parent(self, process: Process, code: int, number: int) -> None:
        parent = process.parent
        if parent is not None and not parent.signals.actions[Signal.SIGCHLD].flags & SA_NOCLDSTOP:
            self.send(parent, SignalInfo(Signal.SIGCHLD, code, pid=process.pid, status=number))

    # -- frames

    def _enter(self, thread: Thread, action: Action, info: SignalInfo) -> bool:
        """Put a frame on the stack and the CPU into the handler; False if the stack has no room."""
        kernel, process = self._kernel, thread.process
        engine, abi, registers = kernel.engine, kernel.abi, kernel.isa.registers
        layout = abi.frame
        sp = engine.read_register(registers.sp)
        on_stack = thread.stack.address <= sp < thread.stack.address + thread.stack.size
        if action.flags & SA_ONSTACK and thread.stack.size and not on_stack:
            top = thread.stack.address + thread.stack.size
        else:
            top = sp - abi.red_zone
        frame = (top - layout.size) & ~15
        if layout.return_address is not None:
            frame -= abi.word  # as on entry to a function, where the return address was pushed
        data = bytearray(layout.size)
        data[layout.siginfo : layout.siginfo + 128] = info.pack(abi.word)
        word = "<Q" if abi.word == 8 else "<I"
        stack_flags = 2 if not thread.stack.size else int(on_stack)
        _STACK[abi.word].pack_into(data, layout.stack, thread.stack.address, stack_flags, thread.stack.size)
        mask = thread.mask if thread.saved_mask is None else thread.saved_mask
        struct.pack_into("<Q", data, layout.mask, mask)
        for name, offset in layout.registers.items():
            struct.pack_into(word, data, offset, engine.read_register(name) & kernel.isa.address_mask)
        if layout.fault_address is not None and info.address is not None:
            struct.pack_into(word, data, layout.fault_address, info.address)
        restorer = action.restorer if action.flags & SA_RESTORER else kernel.restorers.get(process.space, 0)
        if layout.return_address is not None:
            struct.pack_into(word, data, layout.return_address, restorer)
        if layout.record is not None:
            link = engine.read_register(registers.link or "")
            struct.pack_into("<QQ", data, layout.record, engine.read_register(registers.fp), link)
        arguments = (info.number, frame + layout.siginfo, frame + layout.ucontext)
        for offset, value in zip(layout.arguments, arguments, strict=False):
            struct.pack_into(word, data, offset, value)
        try:
            kernel.write(frame, bytes(data))
        except BadAddressError:
            return False
        process.frames[frame] = engine.new_context()
        if len(process.frames) > _FRAMES_KEPT:  # handlers that were left by longjmp never give theirs back
            del process.frames[next(iter(process.frames))]
        if layout.record is not None:
            engine.write_register(registers.fp, frame + layout.record)
        if registers.link is not None:
            engine.write_register(registers.link, restorer)
        for name, value in zip(kernel.isa.calling.arguments, arguments, strict=False):
            engine.write_register(name, value)
        for name, value in layout.on_entry.items():
            engine.write_register(name, value)
        engine.write_register(registers.sp, frame)
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
        kernel = self._kernel
        engine, layout = kernel.engine, kernel.abi.frame
        frame = engine.read_register(kernel.isa.registers.sp)
        if layout.return_address is not None:
            frame -= popped * kernel.abi.word
        data = kernel.read(frame, layout.size)
        context = thread.process.frames.pop(frame, None)
        if context is not None:
            tls = engine.read_register(kernel.abi.tls)
            engine.restore(context)
            if kernel.abi.tls not in layout.registers:
                engine.write_register(kernel.abi.tls, tls)
        for name, offset in layout.registers.items():
            engine.write_register(name, int.from_bytes(data[offset : offset + kernel.abi.word], "little"))
        thread.mask = struct.unpack_from("<Q", data, layout.mask)[0] & ~UNBLOCKABLE
