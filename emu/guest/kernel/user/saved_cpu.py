"""The CPU of a user program's trap: live, or as the kernel's vector has saved it.

Both have the methods of an `Engine` that are needed to carry displaced instructions out.  A store
succeeds only if the program itself could store there without a fault; otherwise it is refused, and
the kernel must be called first.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.displaced.frame import Frame
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.kernel.user.processes import UserProcesses
from emu.probe.trap_frames import LiveFrame, SavedFrame
from emu.support.words import BadAddressError

_FLAGS_OF_SPSR = 0xF000_0000


class UserCpu:
    """The live CPU, in user mode."""

    def __init__(self, table: UserProcesses) -> None:
        self._table = table
        self._engine = table.engine
        self.words = self._engine.words
        self.frame: Frame = LiveFrame(self._engine)
        self.load = self._engine.load
        self.read_register = self._engine.read_register
        self.write_register = self._engine.write_register
        self.write_vector = self._engine.write_vector
        self.discount = self._engine.discount

    @property
    def pc(self) -> int:
        """The program counter."""
        return self._engine.pc

    @pc.setter
    def pc(self, value: int) -> None:
        self._engine.pc = value

    def store(self, address: int, size: int, value: int) -> None:
        """Store an integer.  Raises `BadAddressError`; then nothing is written."""
        store(self._table, address, size, value)


class SavedCpu:
    """The registers of a trap frame."""

    def __init__(self, table: UserProcesses, address: int, discount: Callable[..., None]) -> None:
        self._table = table
        self._engine = table.engine
        self._address = address
        self.words = _SavedWords(table, address)
        self.frame: Frame = SavedFrame(self._engine, address)
        self._slots = table.isa.registers.slots
        self._pc = self._slots[table.isa.registers.pc]
        self.load = self._engine.load
        self.write_vector = self._engine.write_vector
        self.discount = discount

    @property
    def pc(self) -> int:
        """The program counter, as it was saved."""
        return self.words[self._pc]

    @pc.setter
    def pc(self, value: int) -> None:
        self.words[self._pc] = value

    def read_register(self, name: str) -> int:
        """Return a register."""
        if name in self._slots:
            return self.words[self._slots[name]]
        if name == "nzcv":
            return self.frame.register("spsr") & _FLAGS_OF_SPSR
        return self.frame.register(name)

    def write_register(self, name: str, value: int) -> None:
        """Set a register."""
        self.words[self._slots[name]] = value

    def store(self, address: int, size: int, value: int) -> None:
        """Store an integer to memory.  Raises `BadAddressError`; then nothing is written."""
        store(self._table, address, size, value)


class _SavedWords:
    """The words of a trap frame, by the slots of their registers."""

    def __init__(self, table: UserProcesses, address: int) -> None:
        self._engine = table.engine
        self._word = table.isa.word
        names = {slot: name for name, slot in table.isa.registers.slots.items()}
        self._addresses = {
            slot: address + self._word * table.isa.traps.frame.index(name)
            for slot, name in names.items()
            if name in table.isa.traps.frame
        }

    def __getitem__(self, slot: int) -> int:
        return self._engine.load(self._addresses[slot], self._word) if slot in self._addresses else 0  # RISC-V's zero

    def __setitem__(self, slot: int, value: int) -> None:
        self._engine.store(self._addresses[slot], self._word, value)


def store(table: UserProcesses, address: int, size: int, value: int) -> None:
    """Store to the current process's memory, if all of it is present and writable."""
    thread = table.current
    assert thread is not None
    space = thread.process.space
    for at in {address, address + size - 1}:
        if table.memory.physical(space, at // PAGE * PAGE, Access.WRITE) is None:
            raise BadAddressError(at)
    table.engine.store(address, size, value)
