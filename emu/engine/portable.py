"""A CPU by Unicorn's public calls alone (portable mode).

It is for a library whose layout is unknown (`emu.unicorn_layout.layout`), and does the same as
`emu.engine.cpu.Cpu`, some ten to a hundred times slower:

| instead of | there is |
| --- | --- |
| words of the CPU state | a call for each register |
| QEMU's delivery of an exception | `PublicModel.deliver` of the ISA: the manual's rules, in Python |
| exits decided during translation | blocks that are searched when they are entered (`emu.engine.scanning`) |
| one hook with a moving range | a hook for each address (`emu.engine.scanning`) |
| forgetting code by its physical address | forgetting all code |
| forgetting one page's translation | forgetting all translations |
| the mark of a CPU that waits | the instruction at which the run has ended |
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import UcContext, uclib

from emu.engine.cpu import BaseCpu
from emu.engine.errors import EngineError, GuestCrashError
from emu.engine.memory.faults import Operands
from emu.engine.memory.memory import Memory
from emu.engine.memory.pages import PAGE
from emu.engine.public_bytes import PublicBytes
from emu.engine.qemu.tlb import SoftTlb
from emu.isa.base import Isa
from emu.isa.unicorn_model import PAGE_ASIDE, InterruptedCpu
from emu.support.bad_address import BadAddressError

_reg_read, _reg_write = uclib.uc_reg_read, uclib.uc_reg_write
_WORD: Final = 8
_HIDDEN: Final = "trapline_hidden"


class Mark:
    """A word that Unicorn has no call for; it is kept here."""

    def __init__(self, value: int) -> None:
        self.value = value


class PublicWords:
    """The registers by their slots, each read and written by a call."""

    def __init__(self, cpu: PortableCpu) -> None:
        slots = cpu.isa.registers.slots
        self._reads: dict[int, Callable[[], int]] = {}
        self._writes: dict[int, Callable[[int], None]] = {}
        self._numbers: dict[int, int] = {}
        for register in cpu.isa.registers.registers:
            slot = slots.get(register.name)
            if slot is None:
                continue
            self._numbers[slot] = register.unicorn
            if register.name in cpu.public.reads:
                self._reads[slot] = _bound(cpu.public.reads[register.name], cpu)
            if register.name in cpu.public.writes:
                self._writes[slot] = _bound(cpu.public.writes[register.name], cpu)
        self._reference = cpu.reference
        self._word = ctypes.c_uint64()
        self._at = ctypes.addressof(self._word)

    def __getitem__(self, slot: int) -> int:
        read = self._reads.get(slot)
        if read is not None:
            return read()
        self._word.value = 0  # some registers have four bytes
        _reg_read(self._reference, self._numbers[slot], self._at)
        return self._word.value

    def __setitem__(self, slot: int, value: int) -> None:
        write = self._writes.get(slot)
        if write is not None:
            write(value)
            return
        self._word.value = value
        _reg_write(self._reference, self._numbers[slot], self._at)


def _bound(function: Callable[..., Any], cpu: PortableCpu) -> Callable[..., Any]:
    return lambda *arguments: function(cpu, *arguments)


class _PcWord:
    """The program counter with the attribute of a ctypes integer."""

    def __init__(self, words: PublicWords, slot: int, mask: int) -> None:
        self._words = words
        self._slot = slot
        self._mask = mask

    @property
    def value(self) -> int:
        return self._words[self._slot]

    @value.setter
    def value(self, value: int) -> None:
        self._words[self._slot] = value & self._mask


class PortableCpu(BaseCpu):
    """A CPU by public calls; it is an `emu.isa.unicorn_model.PublicCpu`."""

    address = env = 0

    def __init__(self, isa: Isa) -> None:
        super().__init__(isa)
        if self.model.public is None:
            raise EngineError(f"{isa.name} cannot run in portable mode")
        self.public = self.model.public
        self.hidden: dict[str, int] = {}
        self.memory: Memory | None = None
        """The guest's memory, which the engine sets."""
        self.tlb: SoftTlb | None = None
        """The engine's, if the host keeps the address space."""
        self.fail: Callable[[BaseException], None] = lambda _error: None
        """Takes the exception of a hook, which the engine raises again."""
        self.at_exit: Callable[[int], bool] = lambda _pc: False
        """Whether a run ends at an address because Unicorn cannot translate the code there."""
        self.words = PublicWords(self)
        registers = isa.registers
        self.pc_word = _PcWord(self.words, registers.slots[registers.pc], isa.address_mask)
        self.halted, self.exception = Mark(0), Mark(-1)
        self._number = -1
        self._kept: dict[str, UcContext] = {}
        self._left = False
        self._served = False
        self.public.prepare(self)

    # -- the interface for models

    def deliver(self) -> None:
        """Do what the CPU does at the exception; from a hook, so nothing is raised here."""
        try:
            self.public.deliver(self, self.exception.value)
        except BadAddressError as error:
            pc = self.pc_word.value
            self.fail(GuestCrashError(f"the CPU shut down at {pc:#x}: its vector cannot reach {error.address:#x}", pc))
        except BaseException as error:  # noqa: BLE001  raised again by the engine
            self.fail(error)

    def function(self, name: str) -> Any:
        """Raise `EngineError`."""
        raise EngineError(f"{name}_{self.model.target} is not a public call: this needs another mode than portable")

    def interrupt(self) -> None:
        """Do what the CPU does at the clock interrupt."""
        self.public.interrupt(self)

    def note(self, number: int) -> None:
        """Note the number of an exception."""
        self.exception.value = number

    def served(self) -> None:
        """Note that a hook has served an exception after which Unicorn ends the run."""
        self._served = True

    def handled(self, number: int) -> None:
        """Make QEMU forget an exception that the host has handled."""
        self.public.handled(self, number)

    def enter_kernel(self, now: InterruptedCpu) -> None:  # noqa: ARG002  this object does the same
        """Enter the guest's kernel."""
        assert self.public.system_call is not None
        self.public.system_call(self)

    def read_any(self, number: Any) -> Any:
        """Return a register as the binding gives it; a tuple is a register and a number."""
        return self.uc.reg_read(*number) if isinstance(number, tuple) else self.uc.reg_read(number)

    def keep(self, name: str) -> None:
        """Keep the state of the CPU under a name."""
        self._kept[name] = self.new_context()

    def go_back(self, name: str) -> None:
        """Return to a state that was kept."""
        self.restore(self._kept[name])

    def load(self, address: int, size: int) -> int:
        """Return a number from the guest's memory.  Raises `BadAddressError`."""
        assert self.memory is not None
        return self.memory.load(address, size)

    def store(self, address: int, size: int, value: int) -> None:
        """Store a number to the guest's memory.  Raises `BadAddressError`."""
        assert self.memory is not None
        physical = self.memory.translate(address)
        if self.accessed is not None and physical is not None:
            self.accessed(True, physical, size, value)  # noqa: FBT003  as Watch's hook calls it
        self.memory.store(address, size, value)

    def _operands(self) -> Operands:
        assert self.memory is not None
        return Operands(self.isa, self.memory, self.pc_word.value, self)

    def code(self) -> bytes:
        """Return the code at the pc, as far as it is mapped."""
        return self._operands().code()

    def before(self, size: int) -> bytes:
        """Return so many bytes before the pc; none if they are not mapped."""
        assert self.memory is not None
        try:
            return self.memory.read(self.pc_word.value - size, size)
        except BadAddressError:
            return b""

    def present(self, address: int) -> bool:
        """Return whether an address is mapped."""
        return self._operands().present(address)

    def missing(self, address: int) -> int:
        """Return the level of the page tables, from 0 on, whose entry ends the walk to an address."""
        return self._operands().missing(address)

    def unreachable(self, *, write: bool) -> int | None:
        """Return the first byte that the instruction at the pc cannot access; None: unknown."""
        return self._operands().unreachable(write=write)

    def told_at(self, address: int) -> int:
        """Return how the instruction at the pc accesses an address, as UC_PROT_*; 0: not at all."""
        return self._operands().told_at(address)

    def aside(self, action: Callable[[Callable[[int, bytes], None]], None]) -> None:
        """Do something while there is memory of one page at `PAGE_ASIDE`, and no other."""
        self.uc.mem_map(PAGE_ASIDE, PAGE)
        action(self.uc.mem_write)
        self.uc.mem_unmap(PAGE_ASIDE, PAGE)
        self.flush_tlb()

    def show(self, content: bytes, action: Callable[[int], None]) -> None:
        """Do something while the CPU sees a page with this content; `action` takes its address.

        It is the blank page of RAM, at the last address of the address space.
        """
        assert self.memory is not None
        assert self.tlb is not None
        address = self.isa.address_mask & -PAGE
        self.memory.ram[: len(content)] = content
        self.tlb.own = address // PAGE
        self.flush_tlb()
        try:
            action(address)
        finally:
            self.tlb.own = None
            self.memory.ram[: len(content)] = bytes(len(content))
            self.flush_tlb()

    def run_between(self, start: int, end: int) -> None:
        """Execute code from one address until another is reached."""
        # A count of instructions would add a hook, and removing that later looks its addresses up.
        self.uc.ctl_exits_enabled(enable=False)
        self.uc.emu_start(start, end)
        self.uc.ctl_exits_enabled(enable=True)

    # -- translations

    def forget_code(self, start: int, end: int, *, running: bool) -> None:  # noqa: ARG002  all code is forgotten
        """Forget all code at the beginning of the next run.

        A run that is under way ends before its next block, and goes on.
        """
        self.stale = True

    def leave_run(self) -> None:
        """End the run before the block that is entered; it goes on after the code was forgotten.

        In a run Unicorn would forget the block that is being executed, too, and then link the next
        block to whatever has taken its place.
        """
        self._left = True
        self.uc.emu_stop()

    def flush_page(self, address: int) -> None:  # noqa: ARG002  all pages are forgotten
        """Forget the translations of all addresses."""
        self.flush_tlb()

    def flush_tlb(self) -> None:
        """Forget the translations of all addresses."""
        self.uc.ctl(unicorn.UC_CTL_TLB_FLUSH, unicorn.UC_CTL_IO_WRITE)

    # -- runs

    def refresh(self) -> None:
        """Forget code that was written since the last run."""
        if self.stale:
            self.uc.ctl_flush_tb()
            self.stale = False
        self._served = self._left = False

    def resumes(self, crash: int) -> bool:
        """Return whether the run was left to forget code, or a hook served what has ended it."""
        return self._left or (self._served and crash == unicorn.UC_ERR_EXCEPTION)

    def ended(self, waits: Callable[[], bool]) -> None:
        """Note whether the CPU waits."""
        if waits() or self.at_exit(self.pc_word.value):
            self.halted.value = 1

    # -- registers

    def vectors(self) -> tuple[Any, ...]:
        """Return the vector and floating-point registers as bytes, which can be assigned."""
        return tuple(
            PublicBytes(range(file.first, file.last + 1), file.size, self.uc.reg_read, self.uc.reg_write, file.value)
            for file in self.model.vectors
        )

    def general(self, first: int, end: int) -> PublicBytes:
        """Return the words of the slots [first, end) as bytes."""
        words = self.words
        return PublicBytes(
            range(first, end), _WORD, words.__getitem__, words.__setitem__, lambda data: int.from_bytes(data, "little")
        )

    def lose_reservation(self) -> None:
        """Do nothing if there are no reservations.  Raises `EngineError`: no call clears one."""
        if self.model.reservation is not None:
            raise EngineError(f"the reservation of {self.isa.name} cannot be cleared in portable mode")

    # -- contexts

    def new_context(self) -> UcContext:
        """Return a buffer for all registers, filled with their current values."""
        context = super().new_context()
        setattr(context, _HIDDEN, dict(self.hidden))
        return context

    def save(self, context: UcContext) -> None:
        """Save all registers in such a buffer."""
        super().save(context)
        setattr(context, _HIDDEN, dict(self.hidden))

    def restore(self, context: UcContext) -> None:
        """Restore all registers from such a buffer."""
        super().restore(context)
        self.hidden = dict(getattr(context, _HIDDEN))
