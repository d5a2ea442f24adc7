"""A clause as one function of machine code: `run(ecb, args, machine)`.

It does what the Python function of the same clause does (`trapline.framework.ecb`), step by step:

    skip unless tracing is on
    reserve room in the buffer
    the predicate
    each action: its value, then a test for faults
    the header, and the record counts

Values are written to their place in the reservation at once; the record becomes part of the buffer
when `OFFSET` moves at the very end.  One function serves every enabling of the clause: the
differences between them are in the enabling's words (`EcbWord`).  The linker inserts the addresses
of this process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple

from emu.native.builder import Module
from emu.native.values import Value, Word
from trapline.framework import dif
from trapline.framework.aggbuffer import Outcome
from trapline.framework.blocks import AggregationWord, BufferWord, ConsumerWord, EcbWord
from trapline.framework.dif import Op, Subr, Var
from trapline.framework.faults import ERROR, ILLOP, NO_ERROR
from trapline.framework.layout import HEADER_SIZE, ID_SIZE, Placed, RecordLayout
from trapline.framework.native.aggregate import apply, kind_word
from trapline.framework.native.asking import Upcall, asks
from trapline.framework.native.dif import translate
from trapline.framework.native.firing import FLAGS_OFFSET, UNREAD, Firing
from trapline.framework.native.translation import Surroundings
from trapline.framework.needs import goes_stale, needs_scratch
from trapline.framework.program import BY_REFERENCE, BY_USER_REFERENCE, ActionKind, Difo, TypeKind
from trapline.framework.translate import constant

_WORD: Final = 8
_NO_ROOM: Final = (1 << 64) - 1
_HALF: Final = 32
# Time stamp of a speculated record, until it is committed.
_UNTIMED: Final = (1 << 64) - 1
_USER_ADDRESSES: Final = frozenset({ActionKind.USYM, ActionKind.UMOD, ActionKind.UADDR})
_USER_STACKS: Final = frozenset({ActionKind.USTACK, ActionKind.JSTACK})
# The part of a user stack's argument that says how many frames.
_FRAMES: Final = 0xFFFF_FFFF
_BYTES: Final = frozenset({
    ActionKind.STACK, ActionKind.USTACK, ActionKind.JSTACK, ActionKind.USYM, ActionKind.UMOD, ActionKind.UADDR,
    ActionKind.PRINTM,
})  # fmt: skip
# Variables that are the same whenever an enabling fires.
_FIXED: Final = frozenset({Var.EPID, Var.ID, Var.PROBEPROV, Var.PROBEMOD, Var.PROBEFUNC, Var.PROBENAME})
_DESTRUCTIVE: Final = frozenset({
    ActionKind.STOP, ActionKind.RAISE, ActionKind.BREAKPOINT, ActionKind.PANIC, ActionKind.CHILL,
})  # fmt: skip


def has_native_form(objects: Iterable[Difo]) -> bool:
    """Return whether a clause of these objects can be machine code.

    strtok() continues where it was in the other enablings of a firing, which machine code does not
    know.
    """
    return not any(
        dif.opcode(code) == Op.CALL and dif.index(code) == Subr.STRTOK for difo in objects for code in difo.code
    )


def is_bytes(placed: Placed) -> bool:
    """Return whether an action records bytes, and not a number."""
    difo = placed.action.difo
    if placed.action.kind in _BYTES:
        return True
    return difo is not None and bool(difo.returns.flags & (BY_REFERENCE | BY_USER_REFERENCE))


def _finder(placed: Placed) -> str | None:
    """Return the function that copies what a value points at; None: Python does it."""
    difo = placed.action.difo
    if placed.action.kind in _BYTES or difo is None or difo.returns.flags & BY_USER_REFERENCE:
        return None
    return "take" if difo.returns.kind == TypeKind.STRING else "bring"


def _is_fixed(placed: Placed) -> bool:
    """Return whether an element of a tuple is the same whenever an enabling fires."""
    difo = placed.action.difo
    if placed.action.kind is not ActionKind.DIFEXPR or difo is None or not placed.size:
        return False
    if constant(difo) is not None:
        return True
    code = difo.code
    loads = [dif.opcode(one) for one in code] == [Op.LDGS, Op.RET] and dif.rd(code[0]) == dif.rd(code[1])
    return loads and dif.index(code[0]) in _FIXED


class _Value(NamedTuple):
    """The result of a DIF object, at its place in a clause."""

    write: Callable[[], Word]
    """Writes what computes it."""
    faults: bool
    """Whether that may fault."""


class ClauseCode:
    """A clause on its way to machine code; `module` has it when the object is made.

    `staged`: the record is written to a place of its own, and copied when it is whole.  A ring
    buffer needs that: a reservation that is given up may lie on a record that counts.
    """

    def __init__(
        self, predicate: Difo | None, layout: RecordLayout, surroundings: Surroundings, *, staged: bool
    ) -> None:
        self.module = Module()
        self._surroundings = surroundings
        self.strings: list[Difo] = []
        """The DIF objects in the order of the symbols of their string tables, strings0 ..."""
        self._predicate = predicate
        self._layout = layout
        self._staged = staged
        self._objects = [difo for difo in (predicate, *(p.action.difo for p in layout.actions)) if difo is not None]
        kinds = {placed.action.kind for placed in layout.actions}
        self._speculates = ActionKind.SPECULATE in kinds
        self._records = bool(layout.size) and ActionKind.COMMIT not in kinds
        translated = [(placed, self._translated(index, placed)) for index, placed in enumerate(layout.actions)]
        wanted = None if predicate is None else self._object("predicate", predicate)
        self.f = self.module.function("run", 3)
        self.ecb, self.arguments, _machine = self.f.parameters
        self._core = self.module.symbol("core")
        self._firing = self.module.symbol("firing")
        self._buffer = self.f.variable(self.module.symbol("buffer"))
        self._values: list[Word] = []
        self._aggregations = 0
        self._run(wanted, translated)

    def _translated(self, index: int, placed: Placed) -> _Value:
        """Write what computes an action's value."""
        difo = placed.action.difo
        known = 0 if difo is None else constant(difo)
        if known is not None:
            return _Value(lambda: known, faults=False)
        assert difo is not None
        return self._object(f"action{index + 1}", difo)

    def _object(self, name: str, difo: Difo) -> _Value:
        """Write a DIF object as a function of its own."""
        strings = f"strings{len(self.strings)}"
        self.strings.append(difo)
        function, faults = translate(self.module, name, difo, strings, self._surroundings, local=True)
        return _Value(lambda: self.f.call(function, self.ecb, self.arguments), faults)

    # The steps

    def _run(self, wanted: _Value | None, actions: Sequence[tuple[Placed, _Value]]) -> None:
        f = self.f
        f.ret_if(f.eq(f.load(self.module.symbol("consumer"), _WORD * ConsumerWord.ACTIVE), 0))
        self._begin()
        if any(goes_stale(code) for difo in self._objects for code in difo.code):
            self._clean()
        self._offset = f.variable(0)
        self._reserve()
        self._base = f.variable(self.module.symbol("staging") if self._staged else self._reservation())
        if self._objects or actions:
            f.store(self._core, f.and_(self._flags(), NO_ERROR), FLAGS_OFFSET)
        if any(needs_scratch(code) for difo in self._objects for code in difo.code):
            self._scratch()
        if wanted is not None:
            value = wanted.write()
            if wanted.faults:
                self._check(0)
            f.ret_if(f.eq(value, 0))
        for index, (placed, computed) in enumerate(actions):
            if placed.aggregating is not None:
                tuple_ = range(placed.aggregating.first, index)
                self._aggregate(index, placed, computed, [(one, *actions[one]) for one in tuple_])
            elif not placed.in_tuple:
                self._action(index, placed, computed)
        if self._records:
            self._finish()
        f.ret()

    def _begin(self) -> None:
        """Say which firing this is, for whom an upcall asks."""
        self._put("arguments", self.arguments)
        self._put("epid", self._ecb_word(EcbWord.EPID))
        self._put("fresh", 1)
        self._put("depth", 0)
        self._put("timestamp", UNREAD)
        self._put("walltimestamp", UNREAD)
        self._put("fault_offset", UNREAD)

    def _clean(self) -> None:
        """Let the cleaner come by if it is due."""
        f = self.f
        due = f.load(self.module.symbol("consumer"), _WORD * ConsumerWord.NEXT_CLEAN)
        with f.when(f.uge(self._now(), due), likely=False):
            self._upcall(Upcall.CLEAN)

    def _reserve(self) -> None:
        """Find room: where the last record ended, if that is all there is to it."""
        f, needed, alignment = self.f, self._layout.needed, self._layout.alignment
        self._offset.set(self._buffer_word(BufferWord.OFFSET))
        offset = self._offset.get()
        full = f.ugt(f.add(offset, needed), self._buffer_word(BufferWord.LIMIT))
        crooked = f.ne(f.and_(offset, alignment - 1), 0)
        with f.when(f.either(full, crooked), likely=False):
            self._offset.set(self._upcall(Upcall.RESERVE, needed, alignment))
            f.ret_if(f.eq(self._offset.get(), _NO_ROOM))

    def _scratch(self) -> None:
        """Say where scratch space is: behind the reservation, or in a half of its own."""
        f = self.f
        base = self._buffer_word(BufferWord.SCRATCH)
        end = f.add(self._offset.get(), self._layout.needed)
        start = f.add(base, f.select(f.ne(self._buffer_word(BufferWord.FOLLOWS), 0), end, 0))
        self._put("scratch_base", start)
        self._put("scratch_pointer", start)
        self._put("scratch_end", f.add(base, self._buffer_word(BufferWord.SIZE)))

    def _action(self, index: int, placed: Placed, computed: _Value) -> None:
        value = computed.write()
        if computed.faults:
            self._check(index + 1)
        self._values.append(value)
        kind = placed.action.kind
        if kind is ActionKind.SPECULATE:
            self._speculate(value)
        elif kind in _UPCALLS:
            self._upcall(_UPCALLS[kind], value)
            if kind is ActionKind.EXIT:
                self._record(index, placed, value)
        elif kind in _DESTRUCTIVE:
            self._upcall(Upcall.EFFECT, int(kind), value)
        else:
            self._record(index, placed, value)
            return
        self._check(index + 1)

    def _speculate(self, value: Word) -> None:
        """Let the record go to a speculation's buffer."""
        speculate = self.module.external("speculate", 3)
        found = self.f.call(speculate, value, self._layout.needed, self._layout.alignment)
        with self.f.when(self.f.ne(found, 0)):
            self._buffer.set(found)
            self._offset.set(self._get("room"))
            if not self._staged:
                self._base.set(self._reservation())

    def _record(self, index: int, placed: Placed, value: Word) -> None:
        """Write what an action records to its place: a number cut to its size, or bytes."""
        if not is_bytes(placed):
            if placed.size:
                self.f.store(self._place(placed.offset), value, size=placed.size)
            return
        before = self._layout.actions[index - 1] if index else None
        dynamic = before is not None and before.action.kind is ActionKind.TRACEMEM_DYNSIZE
        kept = self._values[index - 1] if dynamic else 0
        place = self._place(placed.offset)
        if placed.action.kind is ActionKind.STACK and "stack" in self._surroundings.support:
            self._stack(index, placed, place)
            return
        if placed.action.kind in _USER_ADDRESSES and "pid" in self._surroundings.support:
            self.f.store(place, self.f.call(self.module.external("pid", 0)))
            self.f.store(place, value, _WORD)
            return
        if placed.action.kind in _USER_STACKS and "ustack" in self._surroundings.support:
            self._user_stack(index, placed, place)
            return
        finder = None if dynamic else _finder(placed)
        if finder is None:
            self._upcall(Upcall.RECORD, index, value, place, kept)
        else:
            found = self.f.call(self.module.external(finder, 3), place, value, placed.size)
            with self.f.when(self.f.eq(found, 0), likely=False):
                self._upcall(Upcall.RECORD, index, value, place, kept)
        self._check(index + 1)

    def _stack(self, index: int, placed: Placed, place: Word) -> None:
        """Record the kernel's stack: of a probe in a function the callers."""
        f = self.f
        found = f.variable(0)
        with f.when(f.ne(self._ecb_word(EcbWord.ANCHORED), 0), likely=True):
            found.set(f.call(self.module.external("stack", 2), place, placed.argument))
        with f.when(f.eq(found.get(), 0), likely=False):
            self._upcall(Upcall.RECORD, index, 0, place, 0)
            self._check(index + 1)

    def _user_stack(self, index: int, placed: Placed, place: Word) -> None:
        """Record the stack of the current process, with room for strings behind it."""
        frames, f = placed.argument & _FRAMES, self.f
        found = f.call(self.module.external("ustack", 2), place, frames)
        with f.choice(f.eq(found, 0), likely=False) as (python, machine_code):
            with python:
                self._upcall(Upcall.RECORD, index, 0, place, 0)
                self._check(index + 1)
            with machine_code:
                self._zero(placed.offset + _WORD * (frames + 1), placed.offset + placed.size)

    def _aggregate(
        self, index: int, placed: Placed, computed: _Value, tuple_: Sequence[tuple[int, Placed, _Value]]
    ) -> None:
        """Aggregate a tuple, which stands between the id slot and the value.

        A key that is always the same for an enabling is looked up once, until the buffer is
        emptied.
        """
        assert placed.aggregating is not None
        f, kind, function = self.f, placed.action.kind, placed.aggregating.function
        buffer, number = self.module.symbol("aggregation"), self._aggregations
        self._aggregations += 1
        count = sum(action.aggregating is not None for action in self._layout.actions)
        memo = EcbWord.AGGREGATIONS + count + 2 * number
        found, epoch = f.variable(0), f.load(buffer, _WORD * AggregationWord.EPOCH)
        fixed = all(_is_fixed(part) for _, part, _ in tuple_)
        if fixed:
            with f.when(f.eq(self._ecb_word(memo), epoch), likely=True):
                found.set(self._ecb_word(memo + 1))
        with f.when(f.eq(found.get(), 0)) if fixed else nullcontext():
            for part in tuple_:
                self._action(*part)
        value = computed.write()
        if computed.faults:
            self._check(index + 1)
        self._values.append(value)
        increment = self._values[index - 1] if placed.aggregating.has_increment else 1
        with f.when(f.eq(found.get(), 0)):
            start = placed.aggregating.base + ID_SIZE
            self._fill_gaps(start, placed.offset, self._layout.actions[placed.aggregating.first : index])
            which = self._ecb_word(EcbWord.AGGREGATIONS + number)
            rest = (placed.offset - start, kind_word(kind, function), which, function.initial)
            found.set(f.call(self.module.external("locate", 6), buffer, self._place(start), *rest))
            if fixed:
                with f.when(f.ugt(found.get(), max(Outcome)), likely=True):
                    f.store(self.ecb, found.get(), _WORD * (memo + 1))
                    f.store(self.ecb, epoch, _WORD * memo)
        with f.when(f.ugt(found.get(), max(Outcome)), likely=True):
            apply(f, kind, placed.argument, found.get(), value, increment)
        with f.when(f.eq(found.get(), Outcome.OTHER), likely=False):
            f.store(self._core, f.or_(self._flags(), ILLOP), FLAGS_OFFSET)
        self._check(index + 1)

    def _finish(self) -> None:
        """Write the header, and make the record count."""
        f = self.f
        kept = [placed for placed in self._layout.actions if not placed.in_tuple and placed.aggregating is None]
        self._fill_gaps(HEADER_SIZE, self._layout.size, kept)
        time = f.word(_UNTIMED) if self._speculates else self._now()
        place = self._place(0)
        f.store(place, self._ecb_word(EcbWord.EPID), size=4)
        f.store(place, f.lshr(time, _HALF), 4, size=4)
        f.store(place, time, 8, size=4)
        if self._staged:
            f.copy(self._reservation(), place, self._layout.size)
        self._put_buffer(BufferWord.OFFSET, f.add(self._offset.get(), self._layout.size))

    def _fill_gaps(self, start: int, end: int, placed: Iterable[Placed]) -> None:
        """Write zeroes where no action writes."""
        for action in (action for action in placed if action.size):
            self._zero(start, action.offset)
            start = action.offset + action.size
        self._zero(start, end)

    def _zero(self, start: int, end: int) -> None:
        if start < end:
            self.f.fill(self._place(start), 0, end - start)

    # What the steps are written with

    def _flags(self) -> Value:
        return self.f.load(self._core, FLAGS_OFFSET)

    def _check(self, number: int) -> None:
        """End the firing if there was a fault or a drop; 0 is the predicate."""
        f = self.f
        with f.when(f.ne(f.and_(self._flags(), ERROR), 0), likely=False):
            self._upcall(Upcall.FAILED, number)
            f.ret()

    def _now(self) -> Value:
        return self.f.call(self.module.external("now", 0))

    def _upcall(self, which: Upcall, *operands: Word) -> Value:
        return asks(self.f, which, *operands)()

    def _ecb_word(self, word: int) -> Value:
        return self.f.load(self.ecb, _WORD * word)

    def _buffer_word(self, word: BufferWord) -> Value:
        return self.f.load(self._buffer.get(), _WORD * word)

    def _put_buffer(self, word: BufferWord, value: Word) -> None:
        self.f.store(self._buffer.get(), value, _WORD * word)

    def _place(self, offset: int) -> Value:
        """Return where the host has a place of the record."""
        return self.f.add(self._base.get(), offset)

    def _reservation(self) -> Value:
        """Return where the host has the reservation."""
        return self.f.add(self._buffer_word(BufferWord.DATA), self._offset.get())

    def _get(self, name: str) -> Value:
        return self.f.load(self._firing, Firing.offset(name))

    def _put(self, name: str, value: Word) -> None:
        self.f.store(self._firing, value, Firing.offset(name))


_UPCALLS: Final = {
    ActionKind.EXIT: Upcall.EXIT,
    ActionKind.COMMIT: Upcall.COMMIT,
    ActionKind.DISCARD: Upcall.DISCARD,
}
