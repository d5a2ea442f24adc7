"""The function of a clause's machine code while it is written: its words, its buffer, its record."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from emu.native.builder import Module
from emu.native.operations import Value, Word
from trapline.framework.base.blocks import BufferWord
from trapline.framework.base.faults import ERROR
from trapline.framework.buffers.layout import Placed
from trapline.framework.native.firing_words import FLAGS_OFFSET, Firing
from trapline.framework.native.upcall_code import Upcall, asks

WORD: Final = 8


class ClauseFunction:
    """`run(ecb, args, machine)`, to which the steps of a clause are added in order."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.f = module.function("run", 3)
        self.ecb, self.arguments, _machine = self.f.parameters
        self.core = module.symbol("core")
        self.buffer = self.f.variable(module.symbol("buffer"))
        self.offset = self.f.variable(0)
        """The reservation's offset in the buffer."""
        self.base = self.f.variable(0)
        """The address of the record while it is written."""
        self._firing = module.symbol("firing")

    def flags(self) -> Value:
        """Return the flags of the CPU's core."""
        return self.f.load(self.core, FLAGS_OFFSET)

    def check(self, number: int) -> None:
        """End the firing if there was a fault or a drop; 0 is the predicate."""
        f = self.f
        with f.when(f.ne(f.and_(self.flags(), ERROR), 0), likely=False):
            self.upcall(Upcall.FAILED, number)
            f.ret()

    def now(self) -> Value:
        """Return the firing's time."""
        return self.f.call(self.module.external("now", 0))

    def upcall(self, which: Upcall, *operands: Word) -> Value:
        """Call Python for a step; return its answer."""
        return asks(self.f, which, *operands)()

    def ecb_word(self, word: int) -> Value:
        """Return a word of the enabling."""
        return self.f.load(self.ecb, WORD * word)

    def buffer_word(self, word: BufferWord) -> Value:
        """Return a word of the buffer."""
        return self.f.load(self.buffer.get(), WORD * word)

    def put_buffer(self, word: BufferWord, value: Word) -> None:
        """Set a word of the buffer."""
        self.f.store(self.buffer.get(), value, WORD * word)

    def place(self, offset: int) -> Value:
        """Return where the host has a place of the record."""
        return self.f.add(self.base.get(), offset)

    def reservation(self) -> Value:
        """Return where the host has the reservation."""
        return self.f.add(self.buffer_word(BufferWord.DATA), self.offset.get())

    def get(self, name: str) -> Value:
        """Return a field of the firing."""
        return self.f.load(self._firing, Firing.offset(name))

    def put(self, name: str, value: Word) -> None:
        """Set a field of the firing."""
        self.f.store(self._firing, value, Firing.offset(name))

    def fill_gaps(self, start: int, end: int, placed: Iterable[Placed]) -> None:
        """Write zeroes where no action writes."""
        for action in (action for action in placed if action.size):
            self.zero(start, action.offset)
            start = action.offset + action.size
        self.zero(start, end)

    def zero(self, start: int, end: int) -> None:
        """Write zeroes to a part of the record."""
        if start < end:
            self.f.fill(self.place(start), 0, end - start)
