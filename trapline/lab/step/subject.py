"""The guests as the recorder sees them: one small class for each of the three."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from emu.displaced.decision import DisplacedTable
from emu.displaced.plans import Plan
from emu.engine.engine import Engine
from emu.guest.base import Location, Thread
from emu.isa.base import Isa
from emu.probe.patcher import Patcher
from emu.support.words import BadAddressError

if TYPE_CHECKING:
    from emu.guest.kernel.guest import KernelGuest
    from emu.guest.linux.guest import LinuxGuest
    from emu.guest.linux_kernel.guest import LinuxKernelGuest
    from emu.guest.objects import LoadedObject

_PAGE: Final = 4096
# Where the first trampoline is aligned (`emu.guest.kernel.trampolines`).
_TRAMPOLINE_ALIGNMENT: Final = 64


@dataclass(slots=True)
class Window:
    """A stretch of the program's own code that is recorded though no breakpoint is in it.

    It begins at `start`, and ends when the CPU comes to `end`.
    """

    start: int
    end: int


class SteppedGuest(Protocol):
    """The interface of a guest for the recorder; each `emu.guest.base.Guest` has it."""

    isa: Isa

    def thread(self) -> Thread:
        """Return the current thread."""
        ...

    def locate(self, address: int) -> Location | None:
        """Name a kernel address."""
        ...

    def locate_user(self, address: int, pid: int | None = None) -> Location | None:
        """Name an address of a process."""
        ...

    def interrupt(self) -> None:
        """Make the current run return soon."""
        ...


class Subject:
    """A guest as the recorder sees it."""

    def __init__(self, guest: SteppedGuest, engine: Engine, patcher: Patcher | None) -> None:
        self.guest = guest
        self.isa: Isa = guest.isa
        self.engine = engine
        self.gates: Mapping[int, str] = {}
        """Functions of the kernel that the emulator answers."""
        self.handler_end = 0
        """The last instruction of the kernel's breakpoint path; 0: there is none."""
        self.interrupt: Callable[[], None] = guest.interrupt
        self._patcher = patcher

    def thread(self) -> tuple[str, int]:
        """Return the name and the number of the current process."""
        thread = self.guest.thread()
        return thread.execname, thread.pid

    def read(self, address: int, size: int) -> bytes:
        """Return code as it is in memory now, less than `size` at the end of a page.

        Raises `BadAddressError`.
        """
        try:
            return self.engine.read(address, size)
        except BadAddressError:
            return self.engine.read(address, min(size, _PAGE - address % _PAGE))

    def original(self, address: int, size: int) -> bytes:
        """Return code as it is without patches.  Raises `BadAddressError`."""
        if self._patcher is not None and self.isa.is_kernel_address(address):
            return self._patcher.original(address, size)
        loaded = self._loaded(address)
        if loaded is None:
            return self.read(address, size)
        return loaded.image.read(address - loaded.bias, size)

    def _loaded(self, address: int) -> LoadedObject | None:
        return next((one for one in self.objects() if one.holds(address)), None)

    def objects(self) -> Sequence[LoadedObject]:
        """Return the ELF files of the current process."""
        return ()

    def locate(self, address: int) -> Location | None:
        """Return the name of an address; None if it has none."""
        if self.isa.is_kernel_address(address):
            return self.guest.locate(address)
        return self.guest.locate_user(address)

    def object_at(self, address: int) -> str:
        """Return the name of the variable or function that holds an address; "": none does."""
        found, function = self.locate(address), self.function(address)
        if found is None or function is None or not found.symbol or found.offset >= max(1, function[1]):
            return ""
        return f"{found.module}`{found.symbol}" + (f"+{found.offset:#x}" if found.offset else "")

    def function(self, address: int) -> tuple[int, int] | None:
        """Return the start and the size of the function that holds an address."""
        loaded = self._loaded(address)
        found = loaded.image.symbol_at(address - loaded.bias) if loaded else None
        return (found[0].value + loaded.bias, found[0].size) if found and loaded else None

    @property
    def in_kernel(self) -> bool:
        """Whether the CPU, or what a trap has interrupted, is kernel code."""
        return self.isa.is_kernel_address(self.engine.pc)

    def is_machinery(self, pc: int) -> bool:
        """Return whether an address is code that exists only because of a probe."""
        return self.locate(pc) is None

    def is_breakpoint(self, pc: int) -> bool:
        """Return whether an exception at a pc that is not a breakpoint's is a probe's."""
        del pc
        return False

    def plan(self, address: int, answer: int) -> Plan | None:
        """Return what is done instead of the displaced instruction after a handler's answer."""
        del address, answer
        return None

    def virtual(self, physical: int, hints: Iterable[int]) -> int:
        """Return an address that means a physical one: near one of the `hints`, or the kernel's."""
        if self.linear is not None and self.isa.is_kernel_address(self.engine.pc):
            return self.linear + physical
        page = physical & -_PAGE
        for hint in hints:
            for near in (0, -_PAGE, _PAGE):
                base = (hint + near & self.isa.address_mask) & -_PAGE
                if self.engine.memory.translate(base) == page:
                    return base + physical - page
        return self.linear + physical if self.linear is not None else physical

    @property
    def linear(self) -> int | None:
        """The kernel address at which all of RAM is mapped; None: it is not."""
        return None

    def physical(self, address: int, size: int) -> int:
        """Return what RAM holds at a physical address."""
        return int.from_bytes(self.engine.memory.ram[address : address + size], "little")


class KernelSubject(Subject):
    """The teaching kernel and its programs."""

    def __init__(self, guest: KernelGuest, table: DisplacedTable | None = None) -> None:
        """`table` is that of the guest's displaced instructions, if not the ISA's."""
        super().__init__(guest, guest.engine, guest.patcher)
        self.kernel = guest
        self._table = table or guest.isa.stub
        self.handler_end = guest.image.symbol("dtrace_invop_return").value
        self.gates = {
            guest.image.symbol(name).value: name for name in ("dtrace_invop", "dtrace_probe", "dtrace_pid_probe")
        }
        self._text_end = guest.text_end + -guest.text_end % _TRAMPOLINE_ALIGNMENT
        self._data = guest.image.symbol("kernel_data_start").value

    @property
    def linear(self) -> int | None:
        """The address at which the kernel maps all of RAM."""
        return self.isa.kernel_base

    def objects(self) -> Sequence[LoadedObject]:
        """Return the ELF files of the current process."""
        process = self.kernel.userland.process(self.kernel.thread().pid)
        return () if process is None else self.kernel.userland.objects.of(process)

    def function(self, address: int) -> tuple[int, int] | None:
        """Return the start and the size of the function that holds an address."""
        if not self.isa.is_kernel_address(address):
            return super().function(address)
        found = self.kernel.symbol_at(address)
        if found is not None and address < found[0].value + max(1, found[0].size):
            return found[0].value, found[0].size
        for module in self.kernel.modules:  # their symbols are their own
            for symbol in module.functions():
                if symbol.value <= address < symbol.value + symbol.size:
                    return symbol.value, symbol.size
        return None

    def is_machinery(self, pc: int) -> bool:
        """Return whether an address is a trampoline's or a scratch page's, or in the window."""
        if self.isa.is_kernel_address(pc):
            return self._text_end <= pc < self._data
        return super().is_machinery(pc)

    def locate(self, address: int) -> Location | None:
        """Name an address; trampolines lie behind the kernel's text."""
        if self._text_end <= address < self._data:
            return Location("kernel", "(trampolines)", address - self._text_end)
        return super().locate(address)

    def is_breakpoint(self, pc: int) -> bool:
        """Return whether it is the LOCK that illumos' SDT writes."""
        return bool(self.kernel.probe_calls) and any(
            point.installed and point.address == pc for point in self.kernel.patcher.listing()
        )

    def plan(self, address: int, answer: int) -> Plan | None:
        """Return what the ISA's stub does."""
        if not self.isa.is_kernel_address(address):
            return None
        saved = int.from_bytes(self.kernel.patcher.original(address, 4), "little")
        return self._table.invop(answer, saved, address)


class LinuxSubject(Subject):
    """A Linux program."""

    def __init__(self, guest: LinuxGuest) -> None:
        super().__init__(guest, guest.engine, None)
        self.linux = guest

    def objects(self) -> Sequence[LoadedObject]:
        """Return the ELF files of the current process."""
        current = self.linux.kernel.current
        return () if current is None else self.linux.objects.of(current.process)


class LinuxKernelSubject(Subject):
    """A Linux kernel; `plan` says what is done instead of the instruction at an address."""

    def __init__(self, guest: LinuxKernelGuest, plan: Callable[[int], Plan | None]) -> None:
        super().__init__(guest, guest.engine, guest.patcher)
        self.kernel = guest
        self._plan = plan

    def function(self, address: int) -> tuple[int, int] | None:
        """Return the start and the size of the function that holds an address."""
        symbol = self.kernel.facts.symbols.holding(address)
        return (symbol.value, symbol.size) if symbol is not None and symbol.size else None

    def is_machinery(self, pc: int) -> bool:
        """Return whether an address is that of a copy."""
        return self.isa.is_kernel_address(pc) and self.locate(pc) is None

    def plan(self, address: int, answer: int) -> Plan | None:
        """Return what the breakpoints of the kernel's text do."""
        return self._plan(address) if answer else None
