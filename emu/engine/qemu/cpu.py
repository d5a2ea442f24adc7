"""One emulated CPU: its registers by their offsets in Unicorn's state, and QEMU's functions for it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import UcContext, uclib

from emu.engine.errors import EngineError
from emu.engine.qemu import alignment, helpers, layout
from emu.isa.base import Isa
from emu.support.words import WORD_MASK

# Words of the CPU state that `Register.slot` may number.
_STATE_WORDS: Final = 128
# These are called millions of times; the binding's wrappers around them take longer than the functions.
_reg_read, _reg_write, _context_restore = uclib.uc_reg_read, uclib.uc_reg_write, uclib.uc_context_restore
_emu_start, _emu_stop = uclib.uc_emu_start, uclib.uc_emu_stop
# emu_start's `until`: an address without code. With 0, a jump to NULL would end the run without an error.
NOWHERE: Final = 0xFFFF_FFFF_FFFF_FFF0

# The attribute of a context with the registers that Unicorn leaves out of it.
_LEFT_OUT: Final = "trapline_left_out"


def _nothing() -> None:
    """Do nothing."""


class Cpu:
    """The CPU of one engine: an `emu.isa.unicorn_model.ModelledCpu`, and more for other parts."""

    def __init__(self, isa: Isa) -> None:
        self.isa = isa
        self.model = isa.unicorn
        helpers.installed(self.model)
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
        self._slots = isa.registers.slots
        self._public = self.model.ids
        self._word = ctypes.c_uint64()
        self._word_at = ctypes.addressof(self._word)
        self.on_public_write: Callable[[], object] = _nothing
        """Is called when a register is written by Unicorn's own call: it may change the CPU's mode."""
        self.address, self.env = layout.check(self.uc, isa)
        """The addresses of QEMU's CPUState, and of the CPU state in it."""
        alignment.install(self.model, self.address)
        self.words = memoryview((ctypes.c_uint64 * _STATE_WORDS).from_address(self.env)).cast("B").cast("Q")
        """The CPU state as 64-bit words, indexed by `Register.slot`."""
        self.halted = ctypes.c_uint32.from_address(self.address + layout.CPU_HALTED)
        """Its `value` is 1 when the CPU waits for an interrupt."""
        self.exception = ctypes.c_int32.from_address(self.address + layout.CPU_EXCEPTION)
        """Its `value` is the number of the current exception; -1: none."""
        self.pc_word = ctypes.c_uint64.from_address(self.env + 8 * self._slots[isa.registers.pc])
        """Its `value` is the program counter."""
        self._pointer = ctypes.c_void_p(self.address)
        self._deliver = getattr(uclib, self.model.deliver)
        self._forget_code = self.function("tb_invalidate_phys_range")
        self._flush_page, self._flush = self.function("tlb_flush_page"), self.function("tlb_flush")

    # -- the interface for models

    def read_public(self, name: str) -> Any:
        """Return one of the `UnicornModel.ids` by Unicorn's own call: a number, or a tuple."""
        return self.uc.reg_read(self._public[name])

    def write_public(self, name: str, value: Any) -> None:
        """Set one of the `UnicornModel.ids` by Unicorn's own call."""
        self.uc.reg_write(self._public[name], value)
        self.on_public_write()

    def deliver(self) -> None:
        """Let QEMU deliver the exception to the guest's own vector."""
        self._deliver(self._pointer)

    def function(self, name: str) -> Any:
        """Return a function of QEMU's for this CPU."""
        return getattr(uclib, f"{name}_{self.model.target}")

    def interrupt(self) -> None:
        """Deliver the clock interrupt to the guest's vector, if it is accepted."""
        self.model.interrupt(self)

    def handled(self) -> None:
        """Make QEMU forget an exception that the host has handled."""
        if self.model.handled:
            self.model.handled(self)

    # -- memory and runs

    def map_ram(self, pointer: int, size: int) -> None:
        """Map the host's memory at `pointer` as physical memory from address 0."""
        self.uc.mem_map_ptr(0, size, unicorn.UC_PROT_ALL, pointer)

    def map_device(self, address: int, size: int, read: Callable[..., int], write: Callable[..., None]) -> None:
        """Map a device: read(_, offset, width, _), and write(_, offset, width, value, _)."""
        self.uc.mmio_map(address, size, read, None, write, None)

    def on_port(self, instruction: int, callback: Callable[..., int]) -> None:
        """Call a function for each `in` (_, port, size, _) or `out` (_, port, size, value, _)."""
        self.uc.hook_add(unicorn.UC_HOOK_INSN, callback, None, 1, 0, instruction)

    def start(self, pc: int, count: int) -> str:
        """Run until `stop`, or `count` instructions if that is not 0.

        Returns the error that ended the run; "": none did.
        """
        error = _emu_start(self.reference, pc, NOWHERE, 0, count)
        return str(unicorn.UcError(error)) if error else ""

    def stop(self) -> None:
        """End the run; in a callback."""
        _emu_stop(self.reference)

    # -- translations

    def forget_blocks(self) -> None:
        """Drop all translated blocks."""
        self.uc.ctl_flush_tb()

    def forget_code(self, start: int, end: int) -> None:
        """Drop Unicorn's translation of code at physical addresses [start, end)."""
        self._forget_code(self.reference, ctypes.c_uint64(start), ctypes.c_uint64(end))

    def flush_page(self, address: int) -> None:
        """Make Unicorn forget the translation of a page's address."""
        self._flush_page(self._pointer, ctypes.c_uint64(address))

    def flush_tlb(self) -> None:
        """Make Unicorn forget the translations of all addresses."""
        self._flush(self._pointer)

    def leave_block(self) -> None:
        """Make Unicorn leave the current block and continue at the pc; call it from a code hook."""
        self.uc.reg_write(self._public[self.isa.registers.pc], int(self.pc_word.value))

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
            self.on_public_write()

    def write_vector(self, number: int, low: int, high: int) -> None:
        """Set a vector register that has 128 bits."""
        self.uc.reg_write(self.model.vectors[0].first + number, high << 64 | low)

    # -- contexts

    def new_context(self) -> UcContext:
        """Return a buffer for all registers, filled with their current values."""
        context = self.uc.context_save()
        self._save_left_out(context)
        return context

    def save(self, context: UcContext) -> None:
        """Save all registers in such a buffer."""
        self.uc.context_update(context)
        self._save_left_out(context)

    def _save_left_out(self, context: UcContext) -> None:
        """Save the registers that Unicorn's contexts do not have."""
        if self.model.left_out:
            setattr(context, _LEFT_OUT, [self.read_register(name) for name in self.model.left_out])

    def restore(self, context: UcContext) -> None:
        """Restore all registers from such a buffer.

        The address space does not change.
        """
        _context_restore(self.reference, context.context)
        if self.model.left_out:
            for name, value in zip(self.model.left_out, getattr(context, _LEFT_OUT), strict=True):
                self.write_register(name, value)

    def general(self, first: int, end: int) -> memoryview:
        """Return the words of the slots [first, end) as bytes of the CPU state."""
        return self.words[first:end].cast("B")

    def vectors(self) -> tuple[memoryview, ...]:
        """Return the vector and floating-point registers as bytes of the CPU state."""
        places = _locate(self.uc, self.isa, self.env, self.new_context())
        return tuple(memoryview((ctypes.c_uint8 * size).from_address(place)).cast("B") for place, size in places)

    def lose_reservation(self) -> None:
        """Clear the reservation of a load-exclusive, as a CPU does on return from an exception.

        Unicorn takes a trap without one, and keeps the reservation.
        """
        if self.model.reservation is not None:
            ctypes.c_uint64.from_address(self.env + self.model.reservation).value = WORD_MASK


# Bytes of the CPU state that are searched: the vectors come early in it.
_STATE: Final = 16 << 10


def _locate(uc: unicorn.Uc, isa: Isa, env: int, context: UcContext) -> tuple[tuple[int, int], ...]:
    """Return (address, size) of each run of registers in the state at `env`.

    The registers are unchanged afterwards.

    `context` is used to save them.  Raises `EngineError` if a register is not found.
    """
    uc.context_update(context)
    found = []
    for file in isa.unicorn.vectors:
        places = []
        for number in (file.first, file.last):
            pattern = (0x5AB1_7E57_0DDB_A115_C0FF_EE00_0000_0000 | number).to_bytes(16, "little")[: file.size]
            uc.reg_write(number, file.value(pattern))
            place = ctypes.string_at(env, _STATE).find(pattern)
            if place < 0:
                raise EngineError(f"unicorn: register {number} of {isa.name} is not in the CPU state that is searched")
            places.append(place)
        found.append((env + places[0], places[1] + file.size - places[0]))
    uc.context_restore(context)
    return tuple(found)
