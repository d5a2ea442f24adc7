"""The user's objects, linked with a glue and loaded into a function guest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final, Protocol

from emu.assembly import machine_code
from emu.elf.link import Externs, UndefinedError, link
from emu.elf.link.object_file import ObjectFile
from emu.engine.engine import Engine
from emu.engine.errors import EngineError
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.function import FunctionFaultError, FunctionGuest
from emu.isa import Isa
from emu.support.words import BadAddressError
from trapline.d.types.rules import size_of
from trapline.d.types.types import Composite, resolve
from trapline.lab.objects.prototypes import Prototype
from trapline.lab.objects.shadow import Shadow
from trapline.lab.objects.structures import LayoutError, View
from trapline.types import DwarfTypes

# The number of instructions after which a call is taken to be endless.
LIMIT = 5_000_000
_RAM: Final = 32 << 20
_LONGEST_TEXT: Final = 4096
_ALIGNMENT: Final = 16


class ObjectError(Exception):
    """The user's objects cannot be used; the message says why, on one line."""


class Offered(Protocol):
    """The methods of a glue that the code calls (`trapline.lab.objects.glue.Glue`)."""

    entries: ClassVar[Sequence[str]]
    data: ClassVar[Mapping[str, int]]

    def __init__(self, code: UserCode) -> None: ...

    @classmethod
    def externs(cls) -> Mapping[str, tuple[str, Prototype]]:
        """Return the gates: the C name -> (the method's name, the prototype)."""
        ...

    def set_up(self) -> None:
        """Prepare the data."""
        ...


class UserCode:
    """Linked and loaded code, whose functions can be called.

    `shadow` watches each access of the code under test, if it is there.
    """

    def __init__(
        self, paths: Sequence[str | Path], glue: type[Offered], isa: Isa | None = None, *, room: int = 0,
        checked: bool = True, cpus: int = 1, beside: Sequence[Path] = (),
    ) -> None:  # fmt: skip
        """Link and load; `room`: bytes that `place` will need; `cpus`: CPUs that a glue may use.

        `beside`: more objects, which are not the user's.

        Raises `ObjectError`, and `emu.elf.file.ElfError` for a file that cannot be linked.
        """
        self.objects = [ObjectFile(path, isa) for path in paths]
        self.name = ",".join(one.name for one in self.objects)
        self.limit = LIMIT
        """The number of instructions after which a call counts as endless."""
        self.isa = isa = self.objects[0].isa
        externs = glue.externs()
        try:
            offered = Externs(tuple(externs), glue.data, machine_code(isa, "ret", 0))
            self._linked = link([*self.objects, *(ObjectFile(path, isa) for path in beside)], offered)
        except UndefinedError as error:
            raise ObjectError(_missing_text(self.name, glue, error)) from None
        self.image = self._linked.image
        absent = [name for name in glue.entries if not self.image.defines(name)]
        if absent:
            raise ObjectError(f"{self.name}: {glue.__name__} calls {', '.join(absent)}, which no object defines")
        try:
            self.guest = FunctionGuest(isa, self.image, ram=_RAM + -(-room // PAGE) * PAGE + 16 * PAGE)
        except EngineError as error:
            raise ObjectError(f"{self.name}: {error}") from None
        self.cpus = [self.guest]
        """CPUs over one memory; `call` is for the first one."""
        for _ in range(1, cpus):
            self.cpus.append(FunctionGuest(isa, self.image, beside=self.cpus[-1], patcher=self.guest.patcher))
        self.running = self.guest
        """The CPU whose call of an extern the glue serves."""
        self.shadow = Shadow(self.guest, self.image) if checked else None
        self.heaps: list[tuple[int, int]] = []
        """The ranges of memory of `allocate`: address, bytes."""
        self._heap = 0
        self._left = 0
        self.glue: Any = glue(self)
        for name, address in self._linked.externs.items():
            for cpu in self.cpus if name in externs else ():
                self._bind(cpu, address, *externs[name])
        self.glue.set_up()

    # -- memory

    def load(self, address: int, size: int) -> bytes:
        """Read memory.  Raises `emu.support.words.BadAddressError`."""
        if self.shadow is not None:
            self.shadow.host(address, size, writes=False)
        return self.guest.engine.read(address, size)

    def store(self, address: int, data: bytes) -> None:
        """Write memory.  Raises `emu.support.words.BadAddressError`."""
        if self.shadow is not None:
            self.shadow.host(address, len(data), writes=True)
        self.guest.engine.memory.write(address, data)

    def text(self, address: int) -> str:
        """Return the C string at an address.  Raises `emu.support.words.BadAddressError`."""
        data = bytearray()
        while len(data) < _LONGEST_TEXT and (byte := self.load(address + len(data), 1)) != b"\0":
            data += byte
        return data.decode("utf-8", "backslashreplace")

    def allocate(self, content: int | bytes, *, initialised: bool = True) -> int:
        """Return the address of new memory, with this content or so many zeros.

        A byte after it is not accessible.
        """
        size = content if isinstance(content, int) else len(content)
        if size + _ALIGNMENT > self._left:
            self._left = max(16 * PAGE, -(-(size + _ALIGNMENT) // PAGE) * PAGE)
            self._heap = self.guest.allocate(self._left)
            self.heaps.append((self._heap, self._left))
            if self.shadow is not None:
                self.shadow.set(self._heap, self._left, Shadow.NONE)
        address = self._heap
        taken = -(-(size + 1) // _ALIGNMENT) * _ALIGNMENT
        self._heap += taken
        self._left -= taken
        if self.shadow is not None:
            self.shadow.set(address, size, Shadow.READ | Shadow.WRITE | (Shadow.KNOWN if initialised else 0))
        if isinstance(content, bytes):
            self.guest.engine.memory.write(address, content)
        return address

    def release(self, address: int, size: int) -> None:
        """Free memory: each later access to it is a mistake."""
        if self.shadow is not None:
            self.shadow.set(address, size, Shadow.NONE)

    def place(self, address: int, data: bytes) -> None:
        """Store the code to examine at its own address; only `showing` makes it readable."""
        self.guest.place(address, data, Access.READ | Access.WRITE)
        if self.shadow is not None:
            self.shadow.set(address, len(data), Shadow.NONE)

    @contextmanager
    def showing(self, address: int, size: int, *, writable: bool = False) -> Iterator[None]:
        """Let the code under test read a range inside a `with` statement."""
        if self.shadow is None:
            yield
            return
        self.shadow.set(address, size, Shadow.READ | Shadow.KNOWN | (Shadow.WRITE if writable else 0))
        try:
            yield
        finally:
            self.shadow.set(address, size, Shadow.NONE)

    # -- types

    @cached_property
    def types(self) -> DwarfTypes:
        """The types of the objects, from their DWARF."""
        return DwarfTypes(self.image)

    def layout(self, name: str) -> Composite:
        """Return the structure of a tag or a typedef.  Raises `LayoutError` if DWARF lacks it."""
        found = self.types.tag("struct", name) or self.types.typedef(name)
        kind = resolve(found) if found is not None else None
        if not isinstance(kind, Composite) or kind.members is None:
            raise LayoutError(f"{self.name}: no structure '{name}' in the debugging information (compile with -g)")
        return kind

    def view(self, name: str, address: int | None = None) -> View:
        """Return a structure at an address, or a new one.  Raises `LayoutError`."""
        kind = self.layout(name)
        return View(self, kind, self.allocate(size_of(kind)) if address is None else address)

    # -- calls

    def defines(self, name: str) -> bool:
        """Return whether the objects define a function."""
        return self.image.defines(name) and name not in self._linked.externs

    def address(self, name: str) -> int:
        """Return the address of a symbol.  Raises `emu.elf.file.ElfError`."""
        return self.image.symbol(name).value

    def call(self, name: str | int, *arguments: int) -> int:
        """Call a function, by its name or address, and return its result, an unsigned machine word.

        Raises `emu.guest.function.FunctionFaultError`, and what a gate raises.
        """
        with self.shadow or nullcontext():
            return self.guest.call(*arguments, function=name, limit=self.limit)

    def enter(self, name: str, registers: Mapping[str, int]) -> int:
        """Start at a function with these registers, as a trap does; return where the CPU stops.

        That is the address of an instruction that waits, if one was reached in time.  Raises what
        `call` raises.
        """
        guest = self.guest
        guest.prepare(function=name)
        for register, value in registers.items():
            if register != self.isa.registers.pc:
                guest.engine.write_register(register, value)
        with self.shadow or nullcontext():
            guest.advance(self.limit)
        return guest.engine.pc - len(self.isa.traps.wait)

    def where(self, address: int) -> str:
        """Return the place of an instruction: its source line, or function and offset."""
        line = self.image.source_lines.at(address)
        found = self.image.symbol_at(address)
        named = f"{found[0].name}+{found[1]:#x}" if found else f"{address:#x}"
        return f"{line} ({named})" if line else named

    def writer(self, address: int) -> str:
        """Return the place that has last written a watched byte, "" if it is not known."""
        pc = self.shadow.writer(address) if self.shadow is not None else None
        return "" if pc is None else self.where(pc)

    def _bind(self, cpu: FunctionGuest, address: int, method: str, declared: Prototype) -> None:
        """Call a method of the glue when a CPU calls an extern."""
        function = getattr(self.glue, method)
        isa, engine = self.isa, cpu.engine
        calling, word = isa.calling, isa.word

        def call() -> None:
            before, self.running = self.running, cpu
            values = self._arguments(engine, declared)
            shadow = self.shadow
            if shadow is not None:
                shadow.inside += 1
            try:
                result = function(*values)
            except BadAddressError as error:
                what = f"{declared.name} was given the bad address {error.address:#x}"
                raise FunctionFaultError(what, address) from None
            finally:
                self.running = before
                if shadow is not None:
                    shadow.inside -= 1
            if declared.result is not None:
                number = declared.result.narrowed(int(result or 0), word)
                engine.write_register(calling.results[0], number & isa.address_mask)
                if declared.result.size > word:
                    engine.write_register(calling.results[1], number >> 8 * word & isa.address_mask)

        engine.code.on_code(address, call)

    def _arguments(self, engine: Engine, declared: Prototype) -> Iterator[int | str]:
        """Yield the arguments of the function that a CPU is entering."""
        isa = self.isa
        registers, word = isa.calling.arguments, isa.word
        slot = 0
        for kind in declared.parameters:
            slots = max(1, -(-kind.size // word))
            value = 0
            for part in range(slots):
                if slot < len(registers):
                    piece = engine.read_register(registers[slot])
                else:
                    at = engine.read_register(isa.registers.sp) + isa.calling.stack_arguments
                    piece = engine.load(at + word * (slot - len(registers)), word)
                value |= piece << 8 * word * part
                slot += 1
            number = kind.narrowed(value, word)
            yield self.text(number) if kind.text else number


def _missing_text(name: str, glue: type[Offered], error: UndefinedError) -> str:
    """Return the message that lists all missing symbols."""
    listed = "; ".join(f"{one} (used by {', '.join(users)})" for one, users in error.missing.items())
    count = len(error.missing)
    noun = "symbol that neither it" if count == 1 else "symbols that neither they"
    return (
        f"{name}: {count} undefined {noun} nor {glue.__name__} offers: {listed}; "
        f"add the objects that define them, or give {glue.__name__} externs or data for them"
    )


__all__ = ["LIMIT", "LayoutError", "ObjectError", "UserCode"]
