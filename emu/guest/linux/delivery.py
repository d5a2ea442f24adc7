"""Signals are delivered: to handlers on the program's own stack, or by what they do without one.

Source: Linux kernel/signal.c, arch/*/kernel/signal.c.  What a frame on the stack does not hold, the
vector registers, is kept beside the process until the handler returns.
"""

from __future__ import annotations

import struct
from collections import deque
from typing import Final

from emu.bad_address import BadAddressError
from emu.engine.engine import Engine
from emu.guest.linux.endings import Endings
from emu.guest.linux.errno import EINTR
from emu.guest.linux.pending import bit, is_ignored, next_of, next_signal
from emu.guest.linux.process import Action, Thread
from emu.guest.linux.sending import Sending
from emu.guest.linux.timers import Timers
from emu.isa.linux_signals import (
    CORE,
    DEFAULT,
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


class Delivery:
    """Delivers the signals of one kernel."""

    def __init__(self, engine: Engine, sending: Sending, timers: Timers, endings: Endings) -> None:
        self._engine = engine
        self._isa = engine.isa
        self._sending = sending
        self._timers = timers
        self._endings = endings
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

    # -- frames

    def _enter(self, thread: Thread, action: Action, info: SignalInfo) -> bool:
        """Put a frame on the stack and the CPU into the handler; False if the stack has no room."""
        engine, process = self._engine, thread.process
        abi, registers = self._isa.linux, self._isa.registers
        layout = abi.frame
        sp = engine.read_register(registers.sp)
        on_stack = thread.stack.address <= sp < thread.stack.address + thread.stack.size
        if action.flags & SA_ONSTACK and thread.stack.size and not on_stack:
            top = (thread.stack.address + thread.stack.size) & self._isa.address_mask
        else:
            top = sp - abi.red_zone
        frame = (top - layout.size) & ~15
        if layout.return_address is not None:
            frame -= abi.word  # as on entry to a function, where the return address was pushed
        if frame < 0:  # a stack pointer at the bottom of the address space
            return False
        data = bytearray(layout.size)
        data[layout.siginfo : layout.siginfo + 128] = info.pack(abi.word)
        word = "<Q" if abi.word == 8 else "<I"
        stack_flags = 2 if not thread.stack.size else int(on_stack)
        _STACK[abi.word].pack_into(data, layout.stack, thread.stack.address, stack_flags, thread.stack.size)
        mask = thread.mask if thread.saved_mask is None else thread.saved_mask
        struct.pack_into("<Q", data, layout.mask, mask)
        for name, offset in layout.registers.items():
            struct.pack_into(word, data, offset, engine.read_register(name) & self._isa.address_mask)
        if layout.fault_address is not None and info.address is not None:
            struct.pack_into(word, data, layout.fault_address, info.address)
        restorer = action.restorer if action.flags & SA_RESTORER else process.space.restorer
        if layout.return_address is not None:
            struct.pack_into(word, data, layout.return_address, restorer)
        if layout.record is not None:
            link = engine.read_register(registers.link or "")
            struct.pack_into("<QQ", data, layout.record, engine.read_register(registers.fp), link)
        arguments = (info.number, frame + layout.siginfo, frame + layout.ucontext)
        for offset, value in zip(layout.arguments, arguments, strict=False):
            struct.pack_into(word, data, offset, value)
        try:
            engine.memory.write(frame, bytes(data))
        except BadAddressError:
            return False
        process.frames[frame] = engine.new_context()
        if len(process.frames) > _FRAMES_KEPT:  # handlers that were left by longjmp never give theirs back
            del process.frames[next(iter(process.frames))]
        if layout.record is not None:
            engine.write_register(registers.fp, frame + layout.record)
        if registers.link is not None:
            engine.write_register(registers.link, restorer)
        for name, value in zip(self._isa.calling.arguments, arguments, strict=False):
            engine.write_register(name, value)
        for name, value in layout.on_entry.items():
            engine.write_register(name, value)
        if layout.cleared:
            flags = self._isa.traps.flags
            engine.write_register(flags, engine.read_register(flags) & ~layout.cleared)
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
        engine, abi = self._engine, self._isa.linux
        layout = abi.frame
        frame = engine.read_register(self._isa.registers.sp)
        if layout.return_address is not None:
            frame -= popped * abi.word
        data = engine.memory.read(frame, layout.size)
        context = thread.process.frames.pop(frame, None)
        if context is not None:
            tls = engine.read_register(abi.tls)
            engine.restore(context)
            if abi.tls not in layout.registers:
                engine.write_register(abi.tls, tls)
        for name, offset in layout.registers.items():
            engine.write_register(name, int.from_bytes(data[offset : offset + abi.word], "little"))
        thread.mask = struct.unpack_from("<Q", data, layout.mask)[0] & ~UNBLOCKABLE
