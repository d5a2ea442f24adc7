"""One emulated CPU.

Its registers, their places in the state of Unicorn, and QEMU's functions for it.
"""

from __future__ import annotations

import ctypes
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import UcContext, uclib

from emu.engine import layout, vectors
from emu.isa.base import Isa
from emu.words import WORD_MASK

# Words of the CPU state that `Register.slot` may number.
_STATE_WORDS: Final = 128
# These are called millions of times; the binding's wrappers around them take longer than the functions.
_reg_read, _reg_write, _context_restore = uclib.uc_reg_read, uclib.uc_reg_write, uclib.uc_context_restore


class Cpu:
    """The CPU of one engine; it is an `emu.isa.unicorn_model.ModelledCpu`."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.model = isa.unicorn
        self.uc = unicorn.Uc(self.model.architecture, self.model.mode)
        self.reference = self.uc._uch  # noqa: SLF001  there is no public way to the handle
        """Unicorn's handle, as its C functions take it."""
        self.handle = int(self.reference.value)
        if self.model.page_size is not None:
            self.uc.ctl_set_page_size(self.model.page_size)
        # emu_start ends by translating `until` in the address space of the moment, to drop the code there.  In user
        # mode that is a page fault that is not handled: cr2 is lost, and old_exception makes the next true fault a
        # double fault. With an empty set of exits it does not do that.
        self.uc.ctl_exits_enabled(enable=True)
        self.address, self.env = layout.check(self.uc, isa)
        self.words = memoryview((ctypes.c_uint64 * _STATE_WORDS).from_address(self.env)).cast("B").cast("Q")
        """The CPU state as 64-bit words, indexed by `Register.slot`."""
        self.halted = ctypes.c_uint32.from_address(self.address + layout.CPU_HALTED)
        """1 when the CPU waits for an interrupt."""
        self.exception = ctypes.c_int32.from_address(self.address + layout.CPU_EXCEPTION)
        self._pointer = ctypes.c_void_p(self.address)
        self._deliver = getattr(uclib, self.model.deliver)
        self._slots = isa.registers.slots
        self._public = {register.name: register.unicorn for register in isa.registers.registers}
        self._word = ctypes.c_uint64()
        self._word_at = ctypes.addressof(self._word)

    # -- the interface for models

    def deliver(self) -> None:
        """Let QEMU deliver the exception to the guest's own vector."""
        self._deliver(self._pointer)

    def function(self, name: str) -> Any:
        """Return a function of QEMU's for this CPU."""
        return getattr(uclib, f"{name}_{self.model.target}")

    def read_public(self, number: int) -> int:
        """Return a register by Unicorn's own call."""
        return int(self.uc.reg_read(number))

    def write_public(self, number: int, value: Any) -> None:
        """Set a register by Unicorn's own call."""
        self.uc.reg_write(number, value)

    # -- registers

    def read_register(self, name: str) -> int:
        """Return a register.  Raises KeyError for an unknown name."""
        slot = self._slots.get(name)
        if slot is not None:
            return int(self.words[slot])
        self._word.value = 0  # some registers have four bytes
        _reg_read(self.reference, self._public[name], self._word_at)
        return self._word.value

    def write_register(self, name: str, value: int) -> None:
        """Set a register.  Raises KeyError for an unknown name."""
        slot = self._slots.get(name)
        if slot is not None:
            self.words[slot] = value
        else:
            self._word.value = value
            _reg_write(self.reference, self._public[name], self._word_at)

    def leave_block(self) -> None:
        """Make Unicorn leave the current block and continue at the pc; call it from a code hook."""
        registers = self.isa.registers
        self.uc.reg_write(self._public[registers.pc], int(self.words[self._slots[registers.pc]]))

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register that has 128 bits."""
        self.uc.reg_write(self.model.vectors[0].first + number, high << 64 | low)

    def vectors(self) -> tuple[memoryview, ...]:
        """Return the vector and floating-point registers as bytes of the CPU state."""
        places = vectors.locate(self.uc, self.isa, self.env, self.new_context())
        return tuple(memoryview((ctypes.c_uint8 * size).from_address(place)).cast("B") for place, size in places)

    def lose_reservation(self) -> None:
        """Clear the reservation of a load-exclusive, as a CPU does on return from an exception.

        Unicorn takes a trap without one, and keeps the reservation.
        """
        if self.model.reservation is not None:
            ctypes.c_uint64.from_address(self.env + self.model.reservation).value = WORD_MASK

    # -- contexts

    def new_context(self) -> UcContext:
        """Return a buffer for all registers, filled with their current values."""
        return self.uc.context_save()

    def save(self, context: UcContext) -> None:
        """Save all registers in such a buffer."""
        self.uc.context_update(context)

    def restore(self, context: UcContext) -> None:
        """Restore all registers from such a buffer.

        The address space does not change.
        """
        _context_restore(self.reference, context.context)
