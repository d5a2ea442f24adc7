"""The traps that end a run of the CPU: breakpoints, exceptions, page faults, system calls.

Sources: Linux arch/x86/kernel/traps.c, arch/arm64/kernel/traps.c, arch/riscv/kernel/traps.c.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.engine import Engine
from emu.engine.errors import GuestCrashError, PageFaultError
from emu.engine.handlers import TrapTaker
from emu.engine.hits.hit_steps import COPY_FAULT, of_exception
from emu.engine.memory.access import Access
from emu.engine.memory.operands import addresses, fault_address
from emu.engine.memory.pages import PAGE
from emu.engine.state import DELIVER, HANDLED
from emu.guest.base import GuestError
from emu.guest.linux.mm.address_space import Space
from emu.guest.linux.mm.page_frames import OutOfMemoryError
from emu.guest.linux.process.pid_table import Tasks
from emu.guest.linux.process.process import Thread
from emu.guest.processes import EXECUTED
from emu.isa.base import Isa
from emu.isa.linux_abi import GENERAL_PROTECTION, NOTHING_FOLLOWS, Fault
from emu.isa.linux_signals import BUS_ADRERR, SEGV_ACCERR, SEGV_MAPERR, Signal, SignalInfo
from emu.probe.hit_cache import HitCache
from emu.probe.trap import TrapHandler

# Bytes of the instructions that have alignment faults.
_WORD: Final = 4


class Traps(TrapTaker):
    """Takes the exceptions of one kernel's CPU."""

    def __init__(
        self, engine: Engine, handlers: TrapHandler, frame: Frame, tasks: Tasks, report: Callable[[str], object]
    ) -> None:
        self._engine = engine
        self._isa = engine.isa
        self._handlers = handlers
        self._frame = frame
        self._tasks = tasks
        self.exceptions: list[Callable[[int, int], bool]] = []
        """Asked (number, pc) about each exception but breakpoints and page faults: whether it is
        theirs."""
        self._report = report
        self._called = False
        self._fault: SignalInfo | None = None
        self._hit_cache = HitCache(engine, handlers, self, frame, by_space=True)
        self._engine.handlers.taker = self

    def advance(self, thread: Thread, run: Callable[[], bool]) -> SignalInfo | None:
        """Run the current thread by `run`, and return the fault it met, as observers leave it.

        None: it met none; `take_call` then says whether it made a system call.  Raises
        `GuestError`.
        """
        engine = self._engine
        try:
            run()  # AArch64 programs may wait for an interrupt, which is as if it had come
        except PageFaultError as error:
            address = error.address
            untagged = self._isa.unicorn.untagged(address)
            if error.access is Access.EXECUTE and untagged != address:
                engine.pc = untagged  # the CPU ignores the tag of a jump's target
                return self.advance(thread, run)
            if error.access is not Access.EXECUTE:
                address = fault_address(engine, address, error.access)
            self._fault = self.page_fault(thread, error.access, address)
        except OutOfMemoryError as error:
            raise GuestError(f"{error}; {thread.process.name} (pid {thread.process.pid}) asked for more") from None
        except GuestCrashError as error:
            self._report(f"{thread.process.name} (pid {thread.process.pid}): {error}")
            self._fault = SignalInfo(Signal.SIGILL, 1, address=error.pc)
        fault, self._fault = self._fault, None
        return None if fault is None else self.corrected(thread, fault)

    def page_fault(self, thread: Thread, access: Access, address: int) -> SignalInfo:
        """Return the signal for an access that the page tables refuse; frames tell of the fault."""
        told, space = self._isa.linux.page_fault, thread.process.space
        if told is not None:
            write, fetch = access is Access.WRITE, access is Access.EXECUTE
            thread.trap = told(address, write=write, fetch=fetch, present=address // PAGE in space.resident_pages)
        return page_fault(space, access, address)

    def corrected(self, thread: Thread, fault: SignalInfo) -> SignalInfo:
        """Return a fault as observers leave it; a thread that runs a copy is put back by them."""
        at = self._engine.pc
        for observer in self._tasks.observers:
            fault = observer.faulted(thread, fault)
        if self._engine.pc != at:
            self._hit_cache.store(of_exception(COPY_FAULT, at))
        return fault

    def take_call(self) -> bool:
        """Return, once, whether the CPU's latest run ended in a system call."""
        called, self._called = self._called, False
        return called

    def forget(self) -> SignalInfo | None:
        """Forget what ended a run that `advance` did not begin; return its fault."""
        fault, self._called, self._fault = self._fault, False, None
        return fault

    def on_system_call(self) -> None:
        """Note a system call, and end the run."""
        self._called = True
        self._engine.running.leave()

    def raise_fault(self, fault: SignalInfo) -> int:
        """End the run, and send the thread that ran a signal it cannot refuse; from a trap."""
        self._fault = fault
        self._engine.running.leave()
        return HANDLED

    def breakpoint(self, address: int) -> int:
        """Fire the probes of a breakpoint; one that is not a probe's becomes SIGTRAP."""
        answer = self._handlers.invop(address, self._frame)
        if not answer:
            if self._is_undefined():
                return DELIVER
            self._engine.pc = address + self._isa.traps.saved_user_pc_after
            self._note(self._isa.unicorn.breakpoint or 0)
            return self.raise_fault(_signal(self._isa.linux.breakpoint, address))
        self._hit_cache.store(address)
        return HANDLED if answer == EXECUTED else answer

    def late(self, address: int) -> int:
        """Do the rest of a hit: machine code could not reach memory."""
        rest = self._hit_cache.rest(address)
        return DELIVER if rest is None else rest(address)

    def _is_undefined(self) -> bool:
        """Return whether what trapped is an undefined instruction.

        Where FBT patches by LOCK, #UD asks its handlers first.  The bytes do not tell: int3 has a
        form of two bytes, too.
        """
        isa = self._isa
        return isa.refused is not None and self._engine.cpu.exception.value != isa.unicorn.breakpoint

    def trap(self, number: int) -> int:
        """Let probes take another exception; it becomes a signal otherwise."""
        pc = self._engine.pc
        if any(claims(number, pc) for claims in self.exceptions):
            self._hit_cache.store(of_exception(number, pc))
            return HANDLED
        if self._called:
            # The CPU is stepped by its trap flag.  A real one clears the flag when it enters the kernel, and has no
            # exception behind a system call.
            return HANDLED
        abi = self._isa.linux
        if abi.execute is not None:
            thread = self._tasks.current
            assert thread is not None
            following = abi.execute(self._engine, thread.segments.base, number, pc)
            if following is not None:
                return HANDLED if following == NOTHING_FOLLOWS else self.trap(following)
        raised = self._isa.linux.raised
        if raised is not None:
            number, pc = raised(self._engine.cpu, self._engine, number, pc)
            self._engine.pc = pc
        self._note(number)
        fault = exception_signal(self._isa, number, pc)
        if fault.number == Signal.SIGBUS and fault.address and not pc % self._isa.instruction_alignment:
            code = self._engine.read(pc, _WORD)
            fault = replace(fault, address=next(addresses(self._engine, code, Access.READ | Access.WRITE), pc))
        return self.raise_fault(fault)

    def _note(self, number: int) -> None:
        """Note an exception of the current thread, for the frames of its signals."""
        thread, told = self._tasks.current, self._isa.linux.exception
        if thread is not None and told is not None:
            thread.trap = told(number, thread.trap)


def exception_signal(isa: Isa, number: int, pc: int) -> SignalInfo:
    """Return the signal for an exception of the CPU."""
    return _signal(isa.linux.faults.get(number, GENERAL_PROTECTION), pc)


def _signal(fault: Fault, pc: int) -> SignalInfo:
    return SignalInfo(fault.signal, fault.code, address=pc if fault.has_address else 0)


def page_fault(space: Space, access: Access, address: int) -> SignalInfo:
    """Return the signal for an access that the page tables refuse.

    The address is not mapped, not mapped for such an access, or past the end of a mapped file.
    """
    area = space.area_at(address)
    if area is None:
        return SignalInfo(Signal.SIGSEGV, SEGV_MAPERR, address=address)
    if access in area.access:
        return SignalInfo(Signal.SIGBUS, BUS_ADRERR, address=address)
    return SignalInfo(Signal.SIGSEGV, SEGV_ACCERR, address=address)
