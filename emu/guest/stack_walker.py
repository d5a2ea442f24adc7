"""The stacks of programs: by call frame information, else by frame pointers.

What a file says of its code's frames (`.eh_frame`, `.debug_frame`) comes first.  Where it says
nothing:

* a return from a signal is known by its code, and continues in what the signal interrupted;
* on the first instruction of a function, and in the table that links to other objects (`.plt`), the
  return address is where a call left it;
* everything else is taken to keep a frame pointer.

`user_stack` walks by frame pointers alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.displaced.frame import Frame
from emu.elf.unwind.compact import PYTHON_ROW, RowKind, compacted, simple
from emu.elf.unwind.reader import FrameError
from emu.elf.unwind.rows import FrameTable
from emu.elf.unwind.walk import Context, Machine, Registers, caller, register
from emu.engine.memory.pages import PAGE
from emu.guest.base import Location
from emu.isa.base import Isa
from emu.support.words import BadAddressError

# The largest number of frames of a stack.
DEEPEST: Final = 512


def user_stack(
    frame: Frame, isa: Isa, load: Callable[[int], int], located: Location | None, *, leaves_save_pointer: bool = False
) -> list[int]:
    """Return the pcs of a stack, innermost first.

    `load(address)` reads a word, or raises `BadAddressError`; the walk ends there.  `located` names
    the pc: on the first instruction of a function the frame is still the caller's, and the return
    address of the function is where the call has put it.  `leaves_save_pointer`: on RISC-V a
    function that calls no other saves only its caller's frame pointer, at the offset where others
    save ra.
    """
    registers, calling = isa.registers, isa.calling
    pc, pointer = frame.register(registers.pc), frame.register(registers.fp)
    pcs = [pc]
    try:
        if located is not None and located.symbol and not located.offset:
            pcs.append(frame.register(registers.link) if registers.link else frame.stack_word(0))
        sp = frame.register(registers.sp)
        while len(pcs) < DEEPEST and pointer >= sp and not pointer % isa.word:
            address, following = load(pointer + calling.frame_return), load(pointer + calling.frame_next)
            first = leaves_save_pointer and len(pcs) == 1
            if first and registers.link and pointer < address < pointer + DEEPEST * PAGE:
                address, following = frame.register(registers.link), address
            if not address:
                break
            pcs.append(address)
            if following <= pointer:
                break
            sp = pointer = following
    except BadAddressError:
        pass
    return pcs


if TYPE_CHECKING:
    from emu.guest.objects import LoadedObject
    from emu.isa.base import Isa

# Bytes of the longest call that a return address can stand behind.
_LONGEST_CALL: Final = 7


class Memory(NamedTuple):
    """The process that a stack is of."""

    read: Callable[[int, int], bytes]
    """(address, size); raises `BadAddressError`."""
    object_at: Callable[[int], LoadedObject | None]


class StackWalker:
    """Follows the stacks of programs of one ISA."""

    def __init__(self, isa: Isa, memory: Memory) -> None:
        self._isa = isa
        self._memory = memory
        names = isa.registers.dwarf
        self._numbers = {name: number for number, name in enumerate(names) if name}
        # The stack's pcs are enough where no rule names a register that is not kept.
        self._sp = self._numbers[isa.registers.sp]
        self._fp = self._numbers[isa.registers.fp]
        self._machine = Machine(
            load=self._load,
            table=self._table,
            word=isa.word,
            mask=isa.address_mask,
            user_mask=(1 << isa.linux.highest.bit_length()) - 1,
            sp=self._sp,
        )

    def pcs(self, frame: Frame, limit: int = DEEPEST) -> list[int]:
        """Return the pcs of a stack, innermost first."""
        context: Context | None = self._first(frame)
        found: list[int] = []
        while context is not None and len(found) < limit:
            found.append(context.pc)
            try:
                context = self._caller(context, innermost=len(found) == 1)
            except (BadAddressError, FrameError):
                break
        return found

    def innermost_row(self, pc: int) -> tuple[int, ...]:
        """Return the innermost frame's row for machine code (`emu.elf.unwind.compact`)."""
        taken = self._taken(pc)
        head = (int(RowKind.RETURNED), 0, taken or 0, *PYTHON_ROW[3:])
        return self.row(pc, interrupted=True, innermost=True) if taken is None else head

    def call_row(self, pc: int) -> tuple[int, ...]:
        """Return whether a call ends at a pc, for machine code."""
        return simple(RowKind.CALL if self._ends_call(pc) else RowKind.NO_CALL)

    def row(self, pc: int, *, interrupted: bool, innermost: bool) -> tuple[int, ...]:
        """Return how machine code finds the caller of a frame whose stack is as the rules say."""
        context = Context(pc, {}, interrupted)
        found = self._table(context.code)
        frame = found[0].at(context.code - found[1]) if found is not None else None
        if frame is not None:
            return compacted(frame, self._sp)
        if self._returns_from_signal(pc):
            return simple(RowKind.SIGNAL)
        return simple(RowKind.FRAMELESS if innermost and self._frameless(pc) else RowKind.FRAME_POINTER)

    def _first(self, frame: Frame) -> Context:
        sp = frame.register(self._isa.registers.sp)
        registers: Registers = {number: frame.register(name) for name, number in self._numbers.items()}
        pc = frame.register(self._isa.registers.pc)
        registers[self._sp] = sp - self._returned_over(pc, sp)
        return Context(pc, registers, interrupted=True)

    def _returned_over(self, pc: int, sp: int) -> int:
        """Return how many bytes the return instruction at a pc has taken off the stack already.

        Return probes fire after their instruction, with its pc: then the return address is below
        the stack, where a call precedes it.
        """
        word, taken = self._isa.word, self._taken(pc)
        if taken is None:
            return 0
        try:
            called = self._ends_call(self._load(sp - taken - word))
        except BadAddressError:
            return 0
        return taken + word if called else 0

    def _ends_call(self, pc: int) -> bool:
        """Return whether a call ends at a pc."""
        start = (pc - _LONGEST_CALL) & self._isa.address_mask
        try:
            return self._isa.calling.ends_with_call(self._memory.read(start, _LONGEST_CALL))
        except BadAddressError:
            return False

    def _taken(self, pc: int) -> int | None:
        """Return what a return instruction at a pc takes off the stack; None: there is none."""
        taken_by_return = self._isa.calling.taken_by_return
        loaded = self._memory.object_at(pc) if taken_by_return is not None else None
        if loaded is None or taken_by_return is None:
            return None
        try:
            # By the file: a breakpoint is in memory.
            return taken_by_return(loaded.image.read(pc - loaded.bias, 3))
        except BadAddressError:
            return None

    def _caller(self, context: Context, *, innermost: bool) -> Context | None:
        try:
            return caller(self._machine, context)
        except LookupError:
            pass
        interrupted = self._interrupted(context)
        if interrupted is not None:
            return interrupted
        if innermost and self._frameless(context.pc):
            return self._returned(context)
        return self._by_frame_pointer(context)

    # -- what no file tells

    def _interrupted(self, context: Context) -> Context | None:
        """Return what a signal interrupted, if the pc is in code that returns from one."""
        isa = self._isa
        if not self._returns_from_signal(context.pc):
            return None
        layout = isa.linux.frame
        start = self._register(context, self._sp)
        if layout.return_address is not None:
            start -= isa.word  # the handler's return has taken it off
        names = {name: self._load((start + offset) & isa.address_mask) for name, offset in layout.registers.items()}
        registers: Registers = {self._numbers[name]: value for name, value in names.items() if name in self._numbers}
        return Context(names[isa.registers.pc], registers, interrupted=True)

    def _returns_from_signal(self, pc: int) -> bool:
        codes = self._isa.linux.trampolines
        try:
            return self._memory.read(pc, max(map(len, codes))).startswith(codes)
        except BadAddressError:
            return False

    def _frameless(self, pc: int) -> bool:
        """Return whether the code at a pc has not made a frame yet, or never does."""
        loaded = self._memory.object_at(pc)
        if loaded is None:
            return False
        named = loaded.image.symbol_at(pc - loaded.bias)
        if named is not None and named[0].is_function:
            return not named[1]
        return any(section.address <= pc - loaded.bias < section.end for section in loaded.image.linkage_tables)

    def _returned(self, context: Context) -> Context | None:
        """Return the caller of code that has no frame."""
        registers, link = dict(context.registers), self._isa.registers.link
        if link is not None:
            pc = self._register(context, self._numbers[link])
        else:
            sp = self._register(context, self._sp)
            pc = self._load(sp)
            registers[self._sp] = (sp + self._isa.word) & self._isa.address_mask
        return Context(pc, registers, interrupted=False) if pc else None

    def _by_frame_pointer(self, context: Context) -> Context | None:
        calling, word = self._isa.calling, self._isa.word
        registers: Registers = dict(context.registers)
        pointer, sp = self._register(context, self._fp), self._register(context, self._sp)
        if pointer < sp or pointer % word or not pointer:
            return None
        pc, following = self._load(pointer + calling.frame_return), self._load(pointer + calling.frame_next)
        registers[self._fp] = following
        # The frame ends behind the words that were saved.
        registers[self._sp] = pointer + max(calling.frame_return + word, 0)
        return Context(pc, registers, interrupted=False) if pc else None

    # -- memory and files

    def _register(self, context: Context, number: int) -> int:
        """Return a register of a frame, 0 if it is lost.  Raises `BadAddressError`."""
        return register(self._machine, context.registers, number) or 0

    def _load(self, address: int, size: int | None = None) -> int:
        return int.from_bytes(self._memory.read(address & self._isa.address_mask, size or self._isa.word), "little")

    def _table(self, pc: int) -> tuple[FrameTable, int] | None:
        loaded = self._memory.object_at(pc)
        return (loaded.image.frames, loaded.bias) if loaded is not None else None
