"""Kernel stacks in machine code, as `KernelStacks.pcs` finds them.

At a breakpoint of FBT or SDT Python determines once how the displaced instruction at a pc changes
the frame, and stores this in a table for machine code (`KernelStacks.known`); for a pc that is not
in the table Python walks the stack.  At a probe that the kernel itself calls, all is in registers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.cpu_core import CoreWord
from emu.engine.hits.tracepoint_blocks import Firing
from emu.guest.kernel.introspection import Introspection
from emu.guest.kernel.stacks import KNOWN, NO_LINK, KernelStacks, KnownWord
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Variable
from emu.native.values import Condition, Value, Word
from emu.support.plain import address_of
from emu.support.words import WORD_MASK

_WORD: Final = 8
_ENTRY: Final = _WORD * len(KnownWord)
_UNKNOWN: Final = WORD_MASK


class StackCode:
    """Writes the function `kernel_callers(place, limit)`.

    It writes the pcs of the probed function's callers, at most `limit`, to a place in this process,
    and returns their number; all ones: Python must find them.
    """

    def __init__(self, isa: Isa, stacks: KernelStacks, introspection: Introspection) -> None:
        self._isa = isa
        self._stacks = stacks
        self._current = introspection.current
        self._offset = introspection.offset

    @property
    def symbols(self) -> dict[str, int]:
        """The address of the table."""
        return {"known_pcs": address_of(self._stacks.known)}

    def write(self, f: Function, _slow: Callable[[], Word]) -> None:
        """Write the function."""
        registers, calling, word = self._isa.registers, self._isa.calling, self._isa.word
        place, limit = f.parameters
        core = f.module.symbol("core")
        firing = f.load(core, _WORD * CoreWord.FIRING)
        with f.when(f.eq(firing, 0)):
            self._in_call(f, place, limit)
        pc = self._register(f, registers.pc)
        self._python_if(f, f.ult(pc, self._isa.kernel_start))
        entry = f.add(f.module.symbol("known_pcs"), f.mul(f.and_(pc, KNOWN - 1), _ENTRY))
        self._python_if(f, f.ne(f.load(entry, _WORD * KnownWord.PC), pc))
        count, pointer = f.variable(0), f.variable(self._register(f, registers.fp))
        framed = f.or_(
            f.load(firing, Firing.offset("framed")),
            f.load(entry, _WORD * KnownWord.FRAMED),
        )
        with f.when(f.both(f.eq(framed, 0), f.ne(limit, 0))):
            sp = self._register(f, registers.sp)
            if registers.link is None:
                pushed = f.mul(f.load(firing, Firing.offset("pushed")), word)
                caller = self._load(f, f.add(sp, pushed))
            else:
                caller = self._register(f, registers.link)
            f.store(place, caller)
            count.set(1)
            link = f.load(entry, _WORD * KnownWord.LINK)
            saves = f.both(
                f.ne(link, NO_LINK),
                f.eq(f.add(sp, link), f.add(pointer.get(), calling.frame_return)),
            )
            with f.when(saves):
                pointer.set(self._load(f, f.add(pointer.get(), calling.frame_next)))
        self._chain(f, place, limit, count, pointer, f.variable(0))

    def _in_call(self, f: Function, place: Word, limit: Word) -> None:
        """Return the callers of a probe that the kernel calls, without the frames that it omits."""
        registers = self._isa.registers
        called = f.load(f.module.symbol("core"), _WORD * CoreWord.CALLED)
        self._python_if(f, f.eq(called, 0))
        frames = f.load(called, Firing.offset("frames"))
        count, omitted = f.variable(0), f.variable(0)
        with f.when(f.ne(frames, 0)):
            omitted.set(f.sub(frames, 1))
            link = registers.link
            caller = self._load(f, self._register(f, registers.sp)) if link is None else self._register(f, link)
            self._put(f, place, limit, count, omitted, caller)
        self._chain(f, place, limit, count, f.variable(self._register(f, registers.fp)), omitted)

    def _put(self, f: Function, place: Word, limit: Word, count: Variable, omitted: Variable, pc: Word) -> None:
        """Write a pc to its place, if there is room, and none is left to omit."""
        with f.choice(f.ne(omitted.get(), 0)) as (omit, keep):
            with omit:
                omitted.set(f.sub(omitted.get(), 1))
            with keep, f.when(f.ult(count.get(), limit)):
                f.store(f.add(place, f.shl(count.get(), 3)), pc)
                count.set(f.add(count.get(), 1))

    def _chain(
        self, f: Function, place: Word, limit: Word, count: Variable, pointer: Variable, omitted: Variable
    ) -> None:
        """Follow the frame pointers, as `Introspection.kernel_chain` does."""
        calling, word = self._isa.calling, self._isa.word
        thread = self._load(f, self._current)
        with f.when(f.eq(thread, 0), likely=False):
            f.ret(count.get())
        low = self._load(f, f.add(thread, self._offset["TD_KSTACK"]))
        high = f.add(low, self._load(f, f.add(thread, self._offset["TD_KSTACK_SIZE"])))
        with f.loop() as loop:
            frame = pointer.get()
            loop.leave_if(f.uge(count.get(), limit))
            loop.leave_if(f.ult(frame, low))  # a frame pointer of 0 would wrap around in the next line
            loop.leave_if(f.ult(f.add(frame, min(calling.frame_next, 0)), low))
            loop.leave_if(f.ugt(f.add(frame, word), high))
            pc = self._load(f, f.add(frame, calling.frame_return))
            loop.leave_if(f.ult(pc, self._isa.kernel_start))
            is_frame = f.both(f.uge(pc, low), f.ult(pc, high))
            following = f.variable(pc)
            with f.when(f.fails(is_frame), likely=True):
                self._put(f, place, limit, count, omitted, pc)
                following.set(self._load(f, f.add(frame, calling.frame_next)))
            loop.leave_if(f.ule(following.get(), frame))
            pointer.set(following.get())
        f.ret(count.get())

    def _register(self, f: Function, name: str) -> Value:
        return f.load(f.module.symbol("cpu_words"), _WORD * self._isa.registers.slots[name])

    def _load(self, f: Function, address: Word) -> Value:
        place = f.call(Callee("kernel_place"), address, self._isa.word)
        self._python_if(f, f.eq(place, 0))
        return f.load(place, size=self._isa.word)

    @staticmethod
    def _python_if(f: Function, condition: Condition) -> None:
        with f.when(condition, likely=False):
            f.ret(_UNKNOWN)
