"""The Python side of Unicorn's callbacks: breakpoints, other exceptions, system calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from emu.engine.hits.tracepoints import Tracepoints
from emu.engine.memory.memory import Memory
from emu.engine.qemu.cpu import Cpu
from emu.engine.state import DELIVER, HANDLED, Word
from emu.engine.time.counter import Counter
from emu.isa.base import Isa
from emu.support.words import BadAddressError


class TrapTaker:
    """The exceptions of one CPU, for the engine's user: it overrides those that it takes."""

    def breakpoint(self, address: int) -> int:  # noqa: ARG002  an interface
        """Take a breakpoint, whose address is also the pc.

        Returns DELIVER (the guest's own vector gets the exception), HANDLED, or what `Engine.plan`
        has returned.
        """
        return DELIVER

    def late(self, address: int) -> int:  # noqa: ARG002  an interface
        """Take that address where machine code could not execute the plan; DELIVER or HANDLED."""
        return DELIVER

    def trap(self, number: int) -> int:  # noqa: ARG002  an interface
        """Take another exception, by Unicorn's number; DELIVER or HANDLED."""
        return DELIVER


class WrappedTaker(TrapTaker):
    """Another taker, for those who look at what it takes."""

    def __init__(self, inner: TrapTaker) -> None:
        self.inner = inner

    def breakpoint(self, address: int) -> int:
        """Pass a breakpoint on."""
        return self.inner.breakpoint(address)

    def late(self, address: int) -> int:
        """Pass a breakpoint on whose plan is left to Python."""
        return self.inner.late(address)

    def trap(self, number: int) -> int:
        """Pass another exception on."""
        return self.inner.trap(number)


class Emulator(Protocol):
    """Emulates instructions (`emu.engine.emulated_instructions`)."""

    def take_fault(self) -> int | None:
        """Emulate the instruction at the pc; None: the exception is not an emulated one's."""

    def correct(self, address: int) -> bool:
        """Execute an instruction that Unicorn gets wrong; False: Unicorn executes it."""


class Handlers:
    """Pass each exception of one CPU on to its `taker`.

    No Python exception may pass through the emulator: it is stored, the run is stopped, and
    `raise_failure` raises it after that.
    """

    def __init__(
        self,
        isa: Isa,
        cpu: Cpu,
        memory: Memory,
        counter: Counter,
        tracepoints: Tracepoints,
        on_system_call: Callable[[], None] | None,
    ) -> None:
        self._taker = TrapTaker()
        self.emulator: Emulator | None = None
        """Is asked first whether an exception is an emulated instruction's."""
        self._on_system_call = on_system_call
        self._system_call_number = isa.unicorn.system_call if on_system_call else None
        self._model = isa.unicorn
        self._cpu = cpu
        self._memory = memory
        self._counter = counter
        self._tracepoints = tracepoints
        self._pc = isa.registers.slots[isa.registers.pc]
        self._failure: BaseException | None = None

    @property
    def taker(self) -> TrapTaker:
        """The one who takes the exceptions.

        A new one gets every breakpoint, until `Tracepoints.set` is called again.
        """
        return self._taker

    @taker.setter
    def taker(self, taker: TrapTaker) -> None:
        self._taker = taker
        self._counter.state[Word.DELIVERED] = 0
        self._tracepoints.clear()

    def breakpoint(self, address: int) -> int:
        """Take a breakpoint."""
        try:
            return self._taker.breakpoint(address)
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
            return HANDLED

    def late(self, address: int) -> int:
        """Take a breakpoint whose plan machine code could not execute."""
        try:
            return self._taker.late(address)
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
            return HANDLED

    def trap(self, number: int) -> int:
        """Take any other exception, or a system call that arrives as one."""
        if number == self._system_call_number:
            self.system_call()
            return HANDLED
        try:
            self._counter.settle()  # a fault inside a block
            served = None if self.emulator is None else self.emulator.take_fault()
            answer = self._taker.trap(number) if served is None else served
            if answer == HANDLED:
                self._cpu.handled()
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
            return HANDLED
        return answer

    def system_call(self) -> None:
        """Serve a system call: it ends its block, which was executed completely."""
        self._counter.state[Word.BLOCK] = 0
        self._cpu.words[self._pc] += self._model.pc_ahead
        try:
            assert self._on_system_call is not None
            self._on_system_call()
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)

    def load(self, address: int, size: int) -> int:
        """Return `size` bytes for a probe's argument; 0 if no memory is mapped there."""
        try:
            return self._memory.load(address, size)
        except BadAddressError:
            return 0
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
            return 0

    def correct(self, address: int) -> int:
        """Execute an instruction that Unicorn gets wrong in this state; 0: it gets it right."""
        try:
            return int(self.emulator is not None and self.emulator.correct(address))
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
            return 0

    def fired(self) -> int:
        """Undo the preparations for Python code that took part in a firing of machine code."""
        try:
            self._tracepoints.fired()
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
        return 0

    def inside(self) -> None:
        """Take back what of the current block comes after the instruction at the pc."""
        self._counter.settle_behind()

    def left(self) -> int:
        """Correct the count: a probe that machine code fired has written code and left its block."""
        self._counter.settle()
        return 0

    def fail(self, error: BaseException) -> None:
        """Store the exception of a callback, the first of several, and end the run."""
        self._failure = self._failure or error
        self._counter.state[Word.NEXT] = 0
        self._cpu.stop()

    def raise_failure(self) -> None:
        """Raise the stored exception of a callback."""
        if self._failure:
            failure, self._failure = self._failure, None
            raise failure
