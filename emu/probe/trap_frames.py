"""The interrupted context of a trap, for each of the two trap paths.

`LiveFrame` reads the registers of the stopped CPU (host trap path); `SavedFrame` reads the trap
frame that the guest kernel's vector saved in memory (guest trap path).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

from emu.displaced.frame import Frame
from emu.displaced.plans import Plan
from emu.engine.engine import Engine
from emu.probe.execute_plan import Words, interpret
from emu.support.words import BadAddressError

# Arguments that `dtrace_probe()` takes.
_FIVE = 5
# The names in a trap frame of registers that are stored as part of another one.
_FLAGS = {"nzcv": "spsr"}


def _late_argument(frame: Frame, engine: Engine, index: int) -> int:
    """Return argument 5 and up (FreeBSD dtrace/{amd64,i386}/dtrace_isa.c, dtrace_getarg).

    FreeBSD has not implemented it on AArch64 and RISC-V: there it prints a message and returns 0.
    """
    isa = engine.isa
    if isa.registers.link is not None:
        return 0
    if index < len(isa.calling.arguments):
        return frame.register(isa.calling.arguments[index])
    return frame.stack_word(index - len(isa.calling.arguments) + isa.calling.stack_arguments // isa.word)


def _five_words(engine: Engine, address: int) -> tuple[int, int, int, int, int]:
    size = engine.isa.word
    try:
        a, b, c, d, e = memoryview(engine.read(address, _FIVE * size)).cast("I" if size == 4 else "Q")
    except BadAddressError:
        a, b, c, d, e = (_word_or_0(engine, address + size * place) for place in range(_FIVE))
    return a, b, c, d, e


def _word_or_0(engine: Engine, address: int) -> int:
    try:
        return engine.load(address, engine.isa.word)
    except BadAddressError:
        return 0


class LiveFrame:
    """The context of a stopped CPU: its current registers.

    With `trapped` it is the frame that a kernel's vector would have saved: it has the same
    registers, and the words that the CPU pushes.
    """

    def __init__(self, engine: Engine, *, trapped: bool = False) -> None:
        self._engine = engine
        traps = engine.isa.traps
        self._pushed = dict(traps.pushed if trapped else ())
        self._held = {*traps.frame, engine.isa.registers.zero} if trapped else None
        self._words = engine.words
        slots = engine.isa.registers.slots
        calling = engine.isa.calling
        self.arguments: Callable[[], tuple[int, int, int, int, int]]
        """Returns the first five integer arguments."""
        # Every firing reads one of these, so there is no Python function in between.
        if calling.arguments:
            self.arguments = partial(itemgetter(*(slots[name] for name in calling.arguments[:_FIVE])), engine.words)
        else:
            self.arguments = partial(self.stack_words, calling.stack_arguments // engine.isa.word)
        get_results = itemgetter(*(slots[name] for name in calling.results))
        self.results: Callable[[], tuple[int, int]] = partial(get_results, engine.words)
        """Returns the two result registers."""
        self._sp = slots[engine.isa.registers.sp]
        self._word = engine.isa.word
        self._load = engine.load
        self.moved = False
        """Whether a handler has set the pc to continue at; the caller of the handler takes note, and
        makes it false."""

    def register(self, name: str) -> int:
        """Return a register by name. Raises KeyError for one that the frame does not have."""
        if name in self._pushed:
            return self._pushed[name]
        if self._held is not None and name not in self._held:
            raise KeyError(name)
        return self._engine.read_register(name)

    def argument(self, index: int) -> int:
        """Return argument `index` >= 5."""
        return _late_argument(self, self._engine, index)

    def stack_word(self, index: int) -> int:
        """Return the word at sp + `index` words."""
        return self._load(self._words[self._sp] + self._word * index, self._word)

    def stack_words(self, first: int) -> tuple[int, int, int, int, int]:
        """Return five words from sp + `first` words on, 0 beyond the end of the stack."""
        return _five_words(self._engine, self._words[self._sp] + self._word * first)

    def go_to(self, address: int, stub_adds: int = 0) -> None:  # noqa: ARG002  (there is no stub)
        """Continue at an address."""
        self._engine.pc = address
        self.moved = True

    def execute(self, plan: Plan, address: int, stub_adds: int = 0, scratch: int = 0) -> bool:  # noqa: ARG002
        """Carry out a plan completely."""
        interpret(plan, self._engine.isa, self._engine, address)
        self.moved = True
        return False


class SavedFrame:
    """A trap frame in guest memory, laid out as the ISA's `Traps.frame` says.

    The pc of a breakpoint's frame is the address of the breakpoint, on x86 too, if `pc_after` is
    the distance from there to the saved pc (`Traps.pc_after`).
    """

    def __init__(self, engine: Engine, address: int, pc_after: int = 0) -> None:
        self.address = address
        self._engine = engine
        self._word = engine.isa.word
        self._pc_after = pc_after

    def register(self, name: str) -> int:
        """Return a register by name. Raises KeyError for one that the frame does not have."""
        if name == self._engine.isa.registers.zero:
            return 0
        place = self.address + self._word * self._index(name)
        traps = self._engine.isa.traps
        # The CPU pushes the last fields only when it changes its stack.
        last = traps.frame[traps.frame.index(traps.frame_sp) :] if traps.privilege else ()
        if name in last and not self.register(traps.privilege) & 3:
            return place if name == traps.frame_sp else self._engine.read_register(name)
        value = self._engine.load(place, self._word)
        return value - self._pc_after if name == self._engine.isa.registers.pc else value

    def arguments(self) -> tuple[int, int, int, int, int]:
        """Return the first five integer arguments."""
        calling = self._engine.isa.calling
        if not calling.arguments:
            return self.stack_words(calling.stack_arguments // self._word)
        a, b, c, d, e = (self.register(name) for name in calling.arguments[:_FIVE])
        return a, b, c, d, e

    def argument(self, index: int) -> int:
        """Return argument `index` >= 5."""
        return _late_argument(self, self._engine, index)

    def results(self) -> tuple[int, int]:
        """Return the two result registers."""
        first, second = (self.register(name) for name in self._engine.isa.calling.results)
        return first, second

    def stack_word(self, index: int) -> int:
        """Return the word at the interrupted sp + `index` words."""
        return self._engine.load(self.register(self._engine.isa.traps.frame_sp) + self._word * index, self._word)

    def stack_words(self, first: int) -> tuple[int, int, int, int, int]:
        """Return five words from the interrupted sp + `first` words on; 0 if no memory is there."""
        sp = self.register(self._engine.isa.traps.frame_sp)
        return _five_words(self._engine, sp + self._word * first)

    def go_to(self, address: int, stub_adds: int = 0) -> None:
        """Continue at an address."""
        self._set_register(self._engine.isa.registers.pc, address - stub_adds)

    def _set_register(self, name: str, value: int) -> None:
        if name != self._engine.isa.registers.zero:
            place = self.address + self._word * self._index(name)
            self._engine.store(place, self._word, value & self._engine.isa.address_mask)

    def execute(self, plan: Plan, address: int, stub_adds: int = 0, scratch: int = 0) -> bool:
        """Carry out a plan on the saved registers.

        A push is left to the stub, because the frame is on that stack.
        """
        registers = self._engine.isa.registers
        cpu = _SavedCpu(self, self._engine)
        interpret(plan, self._engine.isa, cpu, address)
        if cpu.pushed is not None:
            self._engine.store(scratch, self._word, cpu.pushed)
            del cpu.written[registers.sp]
        cpu.written[registers.pc] -= stub_adds
        for name, value in cpu.written.items():
            self._set_register(name, value)
        return cpu.pushed is not None

    def _index(self, name: str) -> int:
        try:
            return self._engine.isa.traps.frame.index(name)
        except ValueError:
            raise KeyError(name) from None


class _SavedCpu:
    """A trap frame with the interface of a CPU, for the execution of plans.

    Writes are stored separately until the plan is complete.
    """

    def __init__(self, frame: SavedFrame, engine: Engine) -> None:
        self.written: dict[str, int] = {}
        self.pushed: int | None = None
        self._frame = frame
        self._names = {slot: name for name, slot in engine.isa.registers.slots.items()}
        self.words: Words = self
        self.load = engine.load

    def __getitem__(self, slot: int) -> int:
        name = self._names[slot]
        return self.written[name] if name in self.written else self.read_register(name)

    def __setitem__(self, slot: int, value: int) -> None:
        self.written[self._names[slot]] = value

    def read_register(self, name: str) -> int:
        return self._frame.register(_FLAGS.get(name, name))

    def store(self, address: int, size: int, value: int) -> None:
        del address, size  # the only store in any plan pushes a word
        self.pushed = value

    def write_vector(self, number: int, low: int, high: int) -> None:
        raise KeyError(f"v{number} = {high:x}:{low:x}: a trap frame of the kernel holds no vectors")
