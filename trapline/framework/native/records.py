"""Machine code that writes what an action records: a number, a string, bytes, a stack."""

from __future__ import annotations

from typing import Final

from emu.native.operations import Word
from trapline.framework.base.blocks import EcbWord
from trapline.framework.base.program import BY_REFERENCE, BY_USER_REFERENCE, ActionKind, TypeKind
from trapline.framework.buffers.layout import Placed, RecordLayout
from trapline.framework.native.clause_function import WORD, ClauseFunction
from trapline.framework.native.dif.translation import Surroundings
from trapline.framework.native.upcall_code import Upcall

_USER_ADDRESSES: Final = frozenset({ActionKind.USYM, ActionKind.UMOD, ActionKind.UADDR})
_USER_STACKS: Final = frozenset({ActionKind.USTACK, ActionKind.JSTACK})
# The part of a user stack's argument that says how many frames.
_FRAMES: Final = 0xFFFF_FFFF
_BYTES: Final = frozenset({
    ActionKind.STACK, ActionKind.USTACK, ActionKind.JSTACK, ActionKind.USYM, ActionKind.UMOD, ActionKind.UADDR,
    ActionKind.PRINTM,
})  # fmt: skip


def is_bytes(placed: Placed) -> bool:
    """Return whether an action records bytes, and not a number."""
    difo = placed.action.difo
    if placed.action.kind in _BYTES:
        return True
    return difo is not None and bool(difo.returns.flags & (BY_REFERENCE | BY_USER_REFERENCE))


def _finder(placed: Placed) -> str | None:
    """Return the function that copies what a value points at; None: Python does it."""
    difo = placed.action.difo
    if placed.action.kind is ActionKind.PRINTM:
        return "print_memory"
    if placed.action.kind in _BYTES or difo is None:
        return None
    found = "take" if difo.returns.kind == TypeKind.STRING else "bring"
    return f"{found}_user" if difo.returns.flags & BY_USER_REFERENCE else found


class Records:
    """Writes the records of one clause's actions, after their values."""

    def __init__(self, code: ClauseFunction, layout: RecordLayout, surroundings: Surroundings) -> None:
        self._code = code
        self._layout = layout
        self._surroundings = surroundings

    def write(self, index: int, placed: Placed, value: Word, before: Word) -> None:
        """Write what an action records to its place: a number cut to its size, or bytes.

        `before` is the value of the action before it, which says how much tracemem() records.
        """
        if not is_bytes(placed):
            if placed.size:
                self._code.f.store(self._code.place(placed.offset), value, size=placed.size)
            return
        sized = self._layout.actions[index - 1] if index else None
        dynamic = sized is not None and sized.action.kind is ActionKind.TRACEMEM_DYNSIZE
        kept = before if dynamic else 0
        place = self._code.place(placed.offset)
        if placed.action.kind is ActionKind.STACK and "stack" in self._surroundings.support:
            self._stack(index, placed, place)
            return
        if placed.action.kind in _USER_ADDRESSES and "pid" in self._surroundings.support:
            self._code.f.store(place, self._code.f.call(self._code.module.external("pid", 0)))
            self._code.f.store(place, value, WORD)
            return
        if placed.action.kind in _USER_STACKS and "ustack" in self._surroundings.support:
            self._user_stack(index, placed, place)
            return
        finder = _finder(placed)
        if finder is None:
            self._code.upcall(Upcall.RECORD, index, value, place, kept)
        else:
            found = self._code.f.call(self._code.module.external(finder, 3), place, value, placed.size)
            with self._code.f.when(self._code.f.eq(found, 0), likely=False):
                self._code.upcall(Upcall.RECORD, index, value, place, kept)
            if dynamic:
                self._cut(place, before, placed.size)
        self._code.check(index + 1)

    def _cut(self, place: Word, kept: Word, size: int) -> None:
        """Write zeroes behind the bytes that tracemem() keeps; 0 keeps all."""
        f = self._code.f
        with f.when(f.ult(f.sub(kept, 1), size - 1)):
            f.fill(f.add(place, kept), 0, f.sub(size, kept))

    def _stack(self, index: int, placed: Placed, place: Word) -> None:
        """Record the kernel's stack: of a probe in a function the callers."""
        f = self._code.f
        found = f.variable(0)
        with f.when(f.ne(self._code.ecb_word(EcbWord.ANCHORED), 0), likely=True):
            found.set(f.call(self._code.module.external("stack", 2), place, placed.argument))
        with f.when(f.eq(found.get(), 0), likely=False):
            self._code.upcall(Upcall.RECORD, index, 0, place, 0)
            self._code.check(index + 1)

    def _user_stack(self, index: int, placed: Placed, place: Word) -> None:
        """Record the stack of the current process, with room for strings behind it."""
        frames, f = placed.argument & _FRAMES, self._code.f
        found = f.call(self._code.module.external("ustack", 2), place, frames)
        with f.choice(f.eq(found, 0), likely=False) as (python, machine_code):
            with python:
                self._code.upcall(Upcall.RECORD, index, 0, place, 0)
                self._code.check(index + 1)
            with machine_code:
                self._code.zero(placed.offset + WORD * (frames + 1), placed.offset + placed.size)
