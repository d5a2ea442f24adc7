"""A CPU with one function, for sheets whose tasks are Python: the student's code works with it.

    cpu["sp"], cpu["a0"]         a register, by its name or by its role: pc, sp, fp, link
    cpu.load(address)            a machine word of memory
    cpu.store(address, value)
    cpu.read(address, size)      bytes, of code too
    cpu.write(address, data)     a plain store
    cpu.flush(address, size)     makes the CPU fetch instructions again: before this it may execute
                                 the old ones, on an ISA that does not keep its instruction cache
                                 in step with stores

The emulator's cache of translated code is what an instruction cache is on a real CPU: it really is
stale after `write`.  A real CPU may see the store by chance; this one never does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from emu.assembly.assembler import Assembled, assemble
from emu.assembly.statements import statements
from emu.displaced.frame import Frame
from emu.engine.errors import EngineError
from emu.guest.function import CODE, LANDING, FunctionFaultError, FunctionGuest
from emu.isa import ISAS
from emu.probe.execute_plan import interpret
from emu.support.words import BadAddressError

# (cpu, address of the breakpoint): does the work of the displaced instruction, and sets the pc.
Trap = Callable[["Cpu", int], object]

_LIMIT: Final = 2000
_TRAPS: Final = 500
_ROLES: Final = {"pc": "pc", "sp": "sp", "fp": "fp", "link": "link"}


class RunError(Exception):
    """The function did not end as it should; the message says how it ended."""


class ProbeError(Exception):
    """A probe's program has made a mistake, such as a load from an invalid address."""


class Cpu:
    """A CPU with one function; the module lists its methods.  `text` is the function's assembly."""

    def __init__(self, isa: str, text: str, start: int = CODE) -> None:
        self.isa = isa
        self.start = start
        self.instructions: tuple[Assembled, ...] = tuple(assemble(ISAS[isa], text, start))
        self.labels = _labels(text, self.instructions, start)
        self.code = b"".join(one.code for one in self.instructions)
        self.word = ISAS[isa].word
        self.traps = 0
        """The number of breakpoints that were hit."""
        self.before: Callable[[int], object] = lambda _pc: None
        """The function that `step` and `steps` call with the pc before each instruction."""
        self._isa = ISAS[isa]
        self._guest = FunctionGuest(self._isa, self.code, address=start)
        self._engine = self._guest.engine
        self._trap: Trap | None = None
        self._guest.traps.add(self._taken)

    def __getitem__(self, name: str) -> int:
        """Return a register.  Raises KeyError, whose text has the name."""
        return self._engine.read_register(self._register(name))

    def __setitem__(self, name: str, value: int) -> None:
        """Set a register; a value is cut to its width.  Raises KeyError."""
        self._engine.write_register(self._register(name), value & (1 << 8 * self.word) - 1)

    def _register(self, name: str) -> str:
        registers = self._isa.registers
        found = getattr(registers, _ROLES[name]) if name in _ROLES else name
        if found not in registers.by_name and registers.link and name[:1] == "x" and name[1:].isdecimal():
            found = dict(enumerate(registers.dwarf)).get(int(name[1:]), name)  # x29 is fp
        if found not in registers.by_name:
            raise KeyError(f"{self.isa} has no register '{name}'")
        return str(found)

    def load(self, address: int) -> int:
        """Return the machine word at an address.  Raises `BadAddressError`."""
        return self._engine.load(address, self.word)

    def store(self, address: int, value: int) -> None:
        """Write the machine word at an address.  Raises `BadAddressError`."""
        self._engine.store(address, self.word, value & (1 << 8 * self.word) - 1)

    def read(self, address: int, size: int) -> bytes:
        """Return bytes of memory.  Raises `BadAddressError`."""
        return self._engine.read(address, size)

    def write(self, address: int, data: bytes) -> None:
        """Store bytes, as a program stores them."""
        if self._isa.traps.coherent:
            self._engine.write_code(address, bytes(data))
        else:
            self._engine.memory.write(address, bytes(data))

    def flush(self, address: int, size: int) -> None:
        """Make the CPU see stores to code, as `fence.i`, `ic ivau` and `isb` do."""
        self._engine.write_code(address, self.read(address, size))

    def allocate(self, data: bytes | int) -> int:
        """Return the address of new memory with bytes, or with that many zeros."""
        return self._guest.allocate(data)

    def lose_reservation(self) -> None:
        """Forget the reservation of a load-exclusive, as every return from an exception does."""
        self._engine.cpu.lose_reservation()

    def jump(self, site: int, target: int) -> bytes:
        """Return the ISA's jump from one address to another."""
        assert self._isa.jump is not None
        return self._isa.jump.encode(target - site - self._isa.jump.origin)

    def return_slot(self) -> tuple[int, int]:
        """Return (sp after the return, return address) of the function that is entered now."""
        if self._isa.registers.link is None:
            return self["sp"] + self.word, self.load(self["sp"])
        return self["sp"], self["link"]

    def set_return(self, address: int) -> None:
        """Replace the return address of the function that is entered now."""
        if self._isa.registers.link is None:
            self.store(self["sp"], address)
        else:
            self["link"] = address

    @property
    def breakpoints(self) -> tuple[bytes, ...]:
        """The ISA's breakpoint instructions, the longest first."""
        return self._isa.traps.breakpoints

    @property
    def code_end(self) -> int:
        """The address after the function's code."""
        return self.start + len(self.code)

    @property
    def result(self) -> int:
        """The function's result."""
        return self._engine.read_register(self._isa.calling.results[0])

    def label(self, name: str) -> int:
        """Return the address of a label of the assembly.  Raises KeyError."""
        return self.labels[name]

    def call(self, *arguments: int, trap: Trap | None = None, limit: int = _LIMIT) -> int:
        """Call the function; `trap` is called at breakpoints.  Raises `RunError`."""
        self._trap = trap
        self.traps = 0
        try:
            return self._guest.call(*arguments, limit=limit)
        except (FunctionFaultError, BadAddressError) as error:
            raise RunError(_told(error)) from error

    def _taken(self, address: int, frame: Frame, _extra: int) -> int:
        if self._trap is None:
            return 0
        self.traps += 1
        if self.traps > _TRAPS:
            raise FunctionFaultError(f"the breakpoint at {self.place(address)} is hit again and again", address)
        self._engine.pc = address
        self._trap(self, address)
        frame.go_to(self._engine.pc)
        return 1

    def steps(self, *arguments: int, limit: int = _LIMIT) -> Iterator[int]:
        """Call the function, and yield the pc before each instruction.

        If the pc is changed then, the new one is yielded before its instruction.  Raises
        `RunError`.
        """
        self._guest.prepare(*arguments)
        for _ in range(limit):
            if self["pc"] == LANDING:
                return
            yield (pc := self["pc"])
            if self["pc"] == pc:
                self.step()
        raise RunError(f"it has not returned after {limit:,} instructions")

    def step(self) -> None:
        """Execute one instruction.  Raises `RunError`."""
        self.before(self["pc"])
        try:
            self._engine.step()
        except (FunctionFaultError, EngineError, BadAddressError) as error:
            raise RunError(f"at {self.place(self['pc'])}: {_told(error)}") from error

    def displace(self, address: int) -> None:
        """Emulate the instruction that was at an address, as FBT's stub does.

        Raises `RunError` for an instruction that the stub does not know.
        """
        offset = address - self.start
        plan = self._isa.stub.plan(self.code[offset : offset + 8], address)
        if plan is None:
            raise RunError(f"the stub does not know the instruction at {self.place(address)}")
        self["pc"] = address
        interpret(plan, self._isa, self._engine, address)

    def place(self, address: int) -> str:
        """Return the name of an address for messages."""
        offset = address - self.start
        return f"+{offset:#x}" if 0 <= offset < len(self.code) else f"{address:#x}"


def _labels(text: str, instructions: tuple[Assembled, ...], start: int) -> dict[str, int]:
    found = {}
    addresses = iter([*(one.address for one in instructions), start + sum(len(one.code) for one in instructions)])
    for statement in statements(text):
        address = next(addresses)
        found.update(dict.fromkeys(statement.labels, address))
    return found


def _told(error: Exception) -> str:
    return " ".join(str(error).split())
