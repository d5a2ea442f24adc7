"""Instructions that the host emulates: the CPU stops before one, and continues after it."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Final

from emu.engine.memory.access import Access
from emu.engine.memory.memory import Memory
from emu.engine.memory.operands import addresses
from emu.engine.memory.pages import PAGE
from emu.engine.python_callbacks import Interrupted
from emu.engine.qemu.cpu import Cpu
from emu.engine.state import HANDLED, Word
from emu.engine.time.counter import Counter
from emu.isa.base import Isa
from emu.support.words import BadAddressError

_LONGEST: Final = 15
# The seed of the random numbers that instructions give.
_SEED: Final = 0


class InstructionEmulator:
    """The emulated instructions of one CPU: an `emu.isa.unicorn_model.ServingCpu`.

    `programs_only`: there is no kernel in the guest, whose vector would get exceptions.
    """

    def __init__(
        self,
        isa: Isa,
        cpu: Cpu,
        memory: Memory,
        counter: Counter,
        now: Interrupted,
        *,
        programs_only: bool,
    ) -> None:
        self.time: Callable[[], int] = lambda: 10 * counter.instructions
        """Returns virtual nanoseconds since the machine started; a clock replaces it."""
        self.cpu_number: Callable[[], int] = lambda: 0
        """Returns the number of the CPU that runs; a guest with several CPUs replaces it."""
        self._programs_only = programs_only
        self.served: Callable[[], object] = lambda: None
        """Called after an instruction was served."""
        self.read_register, self.write_register = cpu.read_register, cpu.write_register
        self.isa, self.read, self.load, self.store = isa, memory.read, memory.load, memory.store
        self.read_public, self.write_public = cpu.read_public, cpu.write_public
        self._rules = isa.unicorn.emulated
        self._isa = isa
        self._cpu = cpu
        self._memory = memory
        self._counter = counter
        self._now = now
        self._pc = isa.registers.slots[isa.registers.pc]
        self._serving = False
        """Whether the exception of an emulated instruction is being raised: it is not looked at again."""
        self._draw = random.Random(_SEED)  # noqa: S311  the same in every run

    @property
    def pc(self) -> int:
        """The address of the instruction."""
        return int(self._now.pc.value)

    def random(self) -> int:
        """Return 64 bits that are the same in every run."""
        return self._draw.getrandbits(64)

    def take(self, *, empty: bool = False) -> bool:
        """Serve the instruction at the pc; False: there is none, the CPU waits for an interrupt.

        Call it between runs, when the count is exact.  `empty`: also one of which Unicorn makes a
        block of no bytes, at the start of a page.
        """
        pc = self._now.pc.value
        if not (self.found(pc) or (empty and self._is_empty(pc))) or self._waits(pc):
            return False
        if self._serve(pc):
            self._cpu.deliver()
        self._cpu.exception.value = -1
        return True

    def take_fault(self) -> int | None:
        """Serve an instruction in place of a page fault that it has not caused.

        Returns None if it is another instruction.

        If an emulated instruction starts a page, the translator reads the byte before it,
        and the page before it may not be mapped. Otherwise the result is that of a trap.
        """
        pc = self._now.pc.value
        if pc % PAGE or self._serving or not self.found(pc):
            return None
        return self._serve(pc)

    def correct(self, address: int) -> bool:
        """Execute the instruction at the pc, which Unicorn would do wrong; False: it does it right.

        Call it from a hook before the instruction.
        """
        rules, code = self._isa.unicorn.corrections, self._code(address)
        assert rules is not None
        after = self._rules.after(self._cpu)
        if after is not None and not self._programs_only:
            return False
        try:
            done = rules.execute(self, code, next(addresses(self, code, Access.WRITE), None))
        except BadAddressError:
            return False
        if callable(done):
            if self._programs_only:
                done(self._now)
            return False
        if done:
            self._counter.settle_behind()
            self._now.pc.value = address + self._isa.instruction_length(code)
            if after is not None:
                after(self._now)
                self._cpu.exception.value = -1
        return done

    def _serve(self, pc: int) -> int:
        """Execute an instruction; return DELIVER if the guest gets an exception, else HANDLED."""
        served = self._rules.serve(self, self._code(pc))
        if isinstance(served, int):
            self._now.pc.value = pc + served & self._isa.address_mask
            self._counter.state[Word.TOTAL] += 1
            self.served()
            after = self._rules.after(self._cpu)
            if after is None:
                return HANDLED
            served = after
        self._serving = True
        try:
            return served(self._now)
        finally:
            self._serving = False

    def found(self, address: int) -> bool:
        """Return whether there is an emulated instruction at an address, or the run ends there."""
        if address == self._counter.state[Word.STOP_AT]:
            return True
        try:
            return self._rules.found(self._cpu, self._fetch, address)
        except BadAddressError:
            return False

    def _is_empty(self, address: int) -> bool:
        try:
            return self._rules.empty(self._fetch, address)
        except BadAddressError:
            return False

    def _fetch(self, address: int) -> int:
        return int.from_bytes(self._memory.read(address, self._rules.fetch_unit), "little")

    def _code(self, pc: int) -> bytes:
        try:
            return self._memory.read(pc, _LONGEST)
        except BadAddressError as error:
            return self._memory.read(pc, error.address - pc)

    def _waits(self, pc: int) -> bool:
        """Return whether the CPU has just executed the instruction that waits for an interrupt."""
        wait = self._isa.traps.wait
        try:
            code = self._memory.read(pc - len(wait), len(wait))
        except BadAddressError:
            return False
        return code == wait and self._counter.ended_with(pc - len(wait), pc)
