"""Return probes of uprobes: the return address is replaced by that of a breakpoint.

Returns are not looked for in the code.  They are counted: each entry puts one on its thread's list,
and whatever comes back to the trampoline is the latest that is still alive.  So a return probe
needs no disassembly, sees tail calls and jumps through registers, and is led astray only by frames
that are jumped out of (longjmp): their returns never come, and are dropped when the stack pointer
shows that the frame is gone.

Source: Linux 6.12 kernel/events/uprobes.c (prepare_uretprobe, uprobe_handle_trampoline),
arch_uretprobe_is_alive() of each ISA.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from emu.frame import Frame
from emu.guest.base import BadAddressError
from emu.guest.processes import CARRIED_OUT
from emu.isa.linux_signals import SI_KERNEL, Signal, SignalInfo
from providers.uprobes.port import Port
from providers.uprobes.records import PendingReturn, Uprobe, WatchedSpace

if TYPE_CHECKING:
    from emu.guest.linux.kernel import Kernel
    from emu.guest.linux.process import Thread

# MAX_URETPROBE_DEPTH: return probes of one thread that may be pending.
MAX_DEPTH: Final = 64


class Returns:
    """The returns that threads of a guest owe; `put` gives up a reference to a probe."""

    def __init__(self, kernel: Kernel, port: Port, put: Callable[[Uprobe], None]) -> None:
        self._kernel = kernel
        self._engine = kernel.engine
        self._port = port
        self._put = put
        self._pending: dict[Thread, list[PendingReturn]] = {}

    def forget(self, thread: Thread) -> None:
        """Drop the returns of a thread that has ended."""
        for pending in self._pending.pop(thread, ()):
            self._put(pending.probe)

    def copy(self, maker: Thread, thread: Thread) -> None:
        """Give a forked thread the returns of its parent, whose stack it has a copy of."""
        if maker not in self._pending:
            return
        for one in self._pending[maker]:
            one.probe.references += 1
        self._pending[thread] = [PendingReturn(one.probe, one.function, one.stack, one.original, one.chained)
                                 for one in self._pending[maker]]  # fmt: skip

    def hijack(self, thread: Thread, space: WatchedSpace, probe: Uprobe, address: int) -> None:
        """Make the function return to the trampoline (prepare_uretprobe)."""
        pending = self._pending.setdefault(thread, [])
        if len(pending) >= MAX_DEPTH:
            return
        if not space.trampoline:
            space.trampoline = space.slots.take()
            space.slots.fill(space.trampoline, self._port.breakpoint)
        engine, registers, word = self._engine, self._kernel.isa.registers, self._kernel.isa.word
        sp = engine.read_register(registers.sp)
        try:
            original = engine.read_register(registers.link) if registers.link else engine.load(sp, word)
            chained = original == space.trampoline
            self._drop_dead(pending, sp, chained=chained)
            if chained and not pending:
                return
            if registers.link:
                engine.write_register(registers.link, space.trampoline)
            else:
                engine.store(sp, word, space.trampoline)
        except BadAddressError:
            return
        if chained:  # a tail call: it returns for its caller as well
            original = pending[-1].original
        probe.references += 1
        pending.append(PendingReturn(probe, address, sp, original, chained))

    def _drop_dead(self, pending: list[PendingReturn], sp: int, *, chained: bool) -> None:
        """Drop the returns whose frames are gone: they were jumped out of (longjmp)."""
        # Only now, at the next entry: nothing tells of a longjmp when it happens.  A tail call reuses the frame below,
        # so there an equal stack pointer means that it is alive.
        while pending and not (sp <= pending[-1].stack if chained else sp < pending[-1].stack):
            self._put(pending.pop().probe)

    def returned(self, thread: Thread, frame: Frame) -> int:
        """Take a return to the trampoline (uprobe_handle_trampoline)."""
        engine, registers = self._engine, self._kernel.isa.registers
        pending = self._pending.get(thread, [])
        engine.discount(1)  # the trampoline's breakpoint is not the program's
        # What ret took off the stack is not the function's: on x86 the frame is alive up to there.
        sp = engine.read_register(registers.sp) - (0 if registers.link else self._kernel.isa.word)
        while pending and sp > pending[-1].stack:
            self._put(pending.pop().probe)
        if not pending:
            self._kernel.raise_fault(SignalInfo(Signal.SIGILL, SI_KERNEL, address=engine.pc))
            return CARRIED_OUT
        # Before the handlers: they find the pc where the program goes on, as on a real kernel.
        engine.pc = pending[-1].original
        while pending:
            one = pending.pop()
            for consumer in tuple(one.probe.consumers):
                if consumer.ret_handler is not None:
                    consumer.ret_handler(one.function, frame)
            self._put(one.probe)
            # A chained return came by a tail call: one ret ends it and the function below.
            if not one.chained:
                break
        return CARRIED_OUT
