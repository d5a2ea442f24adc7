"""The CPU that executes instructions as they are: the measure of the user's code.

It has the memory that the handlers of the user's code have: a scratch area, in the middle of which
sp points, and the places where instructions are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from emu.engine.errors import GuestCrashError, PageFaultError
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.function import FunctionFaultError, FunctionGuest
from emu.isa import Isa

SCRATCH: Final = 0x6800_0000
SCRATCH_SIZE: Final = 0x4000
# The place of copies of instructions.
SLOT: Final = 0x6900_0000
SLOT_SIZE: Final = PAGE
_ROOM: Final = 16 << 20
# The number of steps in which a copy and what follows it must have left the slot.
_LONGEST: Final = 16
_LONGEST_BREAKPOINT: Final = 4
# The beginning of what is said about a fault of memory.
_NO_ACCESS: Final = "no "


class State(NamedTuple):
    """Registers and memory before or after an instruction, and how it faulted."""

    registers: Mapping[str, int]
    memory: bytes
    fault: str = ""

    @property
    def is_refused(self) -> bool:
        """Whether the CPU has raised an exception that is not about memory."""
        return bool(self.fault) and not self.fault.startswith(_NO_ACCESS)


class PlainCpu:
    """A CPU without probes; `texts` are the places of instructions, with their sizes in bytes."""

    def __init__(self, isa: Isa, texts: Iterable[tuple[int, int]]) -> None:
        self._isa = isa
        places = (*texts, (SLOT, SLOT_SIZE))
        self._guest = FunctionGuest(isa, bytes(16), ram=_ROOM + sum((size // PAGE + 2) * PAGE for _, size in places))
        for address, size in places:
            self._guest.place(address, bytes(size), Access.READ | Access.WRITE | Access.EXECUTE)
        self._guest.place(SCRATCH, bytes(SCRATCH_SIZE), Access.READ | Access.WRITE)
        self._engine = self._guest.engine
        self._fresh = self._engine.cpu.new_context()

    def write(self, address: int, code: bytes) -> None:
        """Write instructions."""
        self._engine.write_code(address, code)

    def settled(self, state: State) -> State:
        """Return the state that the CPU has when it is given a state: some bits of flags are fixed."""
        self._load(state.registers[self._isa.registers.pc], state)
        return self._end(state, "")

    def step(self, address: int, before: State) -> State:
        """Execute the instruction at an address."""
        self._load(address, before)
        return self._end(before, self._step())

    def run_copy(self, before: State, code: bytes, steps: int = 0, end: str = "") -> State:
        """Execute code in the slot, from the pc on.

        It ends outside the slot, at a breakpoint, after `steps` instructions, if they are not 0, or
        by the fault `end`.
        """
        self.write(SLOT, code)
        engine, pc = self._engine, before.registers[self._isa.registers.pc]
        self._load(pc, before)
        for number in range(_LONGEST):
            if number and (number == steps or not self._is_in_slot(engine.pc)):
                return self._end(before, "")
            fault = self._step()
            if fault:
                return self._end(before, fault if fault != end else "")
        return self._end(before, "an endless copy")

    def _is_in_slot(self, pc: int) -> bool:
        """Return whether the pc is in the slot, and not at a breakpoint."""
        if not SLOT <= pc < SLOT + SLOT_SIZE:
            return False
        code = self._engine.read(pc, min(_LONGEST_BREAKPOINT, SLOT + SLOT_SIZE - pc))
        return not code.startswith(self._isa.traps.breakpoints)

    def _load(self, address: int, before: State) -> None:
        """Load a state, with all registers that it lacks as on a fresh CPU."""
        engine = self._engine
        engine.cpu.restore(self._fresh)
        engine.memory.write(SCRATCH, before.memory)
        for name, value in before.registers.items():
            engine.write_register(name, value)
        engine.pc = address

    def _step(self) -> str:
        """Execute one instruction; return how it faulted, "" if it did not."""
        try:
            self._engine.step()
        except PageFaultError as error:
            # If the fetch from the target of a jump fails, the jump itself was executed.
            if error.access is not Access.EXECUTE:
                return f"{_NO_ACCESS}{(error.access.name or '').lower()} at {error.address:#x}"
        except (GuestCrashError, FunctionFaultError) as error:
            return str(error).partition(" at ")[0]
        return ""

    def _end(self, before: State, fault: str) -> State:
        engine, mask = self._engine, self._isa.address_mask  # Unicorn's pc may have more bits (i386)
        registers = {name: engine.read_register(name) & mask for name in before.registers}
        return State(registers, engine.read(SCRATCH, SCRATCH_SIZE), fault)
