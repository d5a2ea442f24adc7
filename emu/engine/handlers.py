"""The Python side of Unicorn's callbacks: breakpoints, other exceptions, system calls."""

from __future__ import annotations

from collections.abc import Callable

from emu.engine.cpu import Cpu
from emu.engine.hits.tracepoints import Tracepoints
from emu.engine.memory.memory import Memory
from emu.engine.state import DELIVER, HANDLED, Word
from emu.engine.time.counter import Counter
from emu.isa.base import Isa
from emu.support.bad_address import BadAddressError


class Handlers:
    """Pass each exception of one CPU on to the function that the engine's user has set for it.

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
        self._on_breakpoint: Callable[[int], int] = lambda _address: DELIVER
        self.on_late: Callable[[int], int] = lambda _address: DELIVER
        """Takes that address where native code could not carry the plan out; DELIVER or HANDLED."""
        self.on_trap: Callable[[int], int] = lambda _number: DELIVER
        """Takes Unicorn's number of any other exception; DELIVER or HANDLED."""
        self.take_special: Callable[[], int | None] = lambda: None
        """Serves a special instruction instead of a page fault (`emu.engine.emulated_instructions`)."""
        self.execute: Callable[[int], bool] = lambda _address: False
        """Executes an instruction that Unicorn gets wrong (`emu.engine.emulated_instructions`)."""
        self.inside = counter.settle_behind
        """Takes back what of the block comes after the instruction at the pc."""
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
    def on_breakpoint(self) -> Callable[[int], int]:
        """Takes the address of a breakpoint, which is also the pc.

        It answers DELIVER (the guest's own vector gets the exception), HANDLED, or what
        `Engine.plan` returns.  After it is changed it is called for every breakpoint, until
        `Tracepoints.set` is called again.
        """
        return self._on_breakpoint

    @on_breakpoint.setter
    def on_breakpoint(self, taker: Callable[[int], int]) -> None:
        self._on_breakpoint = taker
        self._counter.state[Word.DELIVERED] = 0
        self._tracepoints.clear()

    def breakpoint(self, address: int) -> int:
        """Take a breakpoint."""
        try:
            return self._on_breakpoint(address)
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)
            return HANDLED

    def late(self, address: int) -> int:
        """Take a breakpoint whose plan machine code could not carry out."""
        try:
            return self.on_late(address)
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
            served = self.take_special()
            answer = self.on_trap(number) if served is None else served
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
            return int(self.execute(address))
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

    def left(self) -> int:
        """Correct the count: a probe that machine code fired has written code and left its block."""
        self._counter.settle()
        return 0

    def fail(self, error: BaseException) -> None:
        """Store the exception of a callback, the first of several, and end the run."""
        self._failure = self._failure or error
        self._counter.state[Word.NEXT] = 0
        self._cpu.uc.emu_stop()

    def raise_failure(self) -> None:
        """Raise the stored exception of a callback."""
        if self._failure:
            failure, self._failure = self._failure, None
            raise failure
