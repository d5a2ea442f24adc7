"""A clause as one function of machine code: `run(ecb, args, machine)`.

It does what `trapline.framework.probe.clause` does, step by step:

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

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Final, NamedTuple

from emu.native.builder import Module
from emu.native.operations import Word
from trapline.framework.base import dif
from trapline.framework.base.blocks import AggregationWord, BufferWord, ConsumerWord, EcbWord
from trapline.framework.base.dif import Op, Var
from trapline.framework.base.faults import ILLOP, NO_ERROR
from trapline.framework.base.program import ActionKind, Difo
from trapline.framework.buffers.aggbuffer import Outcome
from trapline.framework.buffers.layout import HEADER_SIZE, ID_SIZE, Placed, RecordLayout
from trapline.framework.dif.interpreter import constant
from trapline.framework.dif.needs import goes_stale, needs_scratch
from trapline.framework.native import reserve
from trapline.framework.native.aggregate import apply, kind_word
from trapline.framework.native.clause_function import WORD, ClauseFunction
from trapline.framework.native.dif.function import translate
from trapline.framework.native.dif.translation import Surroundings
from trapline.framework.native.firing_words import FLAGS_OFFSET, UNREAD
from trapline.framework.native.records import Records
from trapline.framework.native.upcall_code import Upcall

_NO_SPACE: Final = (1 << 64) - 1
_HALF: Final = 32
# Time stamp of a speculated record, until it is committed.
_UNTIMED: Final = (1 << 64) - 1
# Variables that are the same whenever an enabling fires.
_FIXED: Final = frozenset({Var.EPID, Var.ID, Var.PROBEPROV, Var.PROBEMOD, Var.PROBEFUNC, Var.PROBENAME})
_DESTRUCTIVE: Final = frozenset({
    ActionKind.STOP, ActionKind.RAISE, ActionKind.BREAKPOINT, ActionKind.PANIC, ActionKind.CHILL,
})  # fmt: skip


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
        self._code = ClauseFunction(self.module)
        self._written = Records(self._code, layout, surroundings)
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
        return _Value(lambda: self._code.f.call(function, self._code.ecb, self._code.arguments), faults)

    # The steps

    def _run(self, wanted: _Value | None, actions: Sequence[tuple[Placed, _Value]]) -> None:
        f = self._code.f
        f.ret_if(f.eq(f.load(self.module.symbol("consumer"), WORD * ConsumerWord.ACTIVE), 0))
        self._begin()
        if any(goes_stale(code) for difo in self._objects for code in difo.code):
            self._clean()
        self._reserve()
        self._code.base.set(self.module.symbol("staging") if self._staged else self._code.reservation())
        if self._objects or actions:
            f.store(self._code.core, f.and_(self._code.flags(), NO_ERROR), FLAGS_OFFSET)
        if any(needs_scratch(code) for difo in self._objects for code in difo.code):
            self._scratch()
        if wanted is not None:
            value = wanted.write()
            if wanted.faults:
                self._code.check(0)
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
        self._code.put("arguments", self._code.arguments)
        self._code.put("epid", self._code.ecb_word(EcbWord.EPID))
        self._code.put("fresh", 1)
        self._code.put("depth", 0)
        self._code.put("timestamp", UNREAD)
        self._code.put("walltimestamp", UNREAD)
        self._code.put("fault_offset", UNREAD)

    def _clean(self) -> None:
        """Let the cleaner come by if it is due."""
        f = self._code.f
        due = f.load(self.module.symbol("consumer"), WORD * ConsumerWord.NEXT_CLEAN)
        with f.when(f.uge(self._code.now(), due), likely=False):
            self._code.upcall(Upcall.CLEAN)

    def _reserve(self) -> None:
        """Find room: where the last record ended, if that is all there is to it."""
        f, needed, alignment = self._code.f, self._layout.needed, self._layout.alignment
        offset = self._code.buffer_word(BufferWord.OFFSET)
        start = reserve.aligned(f, offset, alignment)
        self._code.offset.set(start)
        full = f.ugt(f.add(start, needed), self._code.buffer_word(BufferWord.LIMIT))
        with f.choice(full, likely=False) as (elsewhere, here):
            with elsewhere:
                self._make_way()
            with here:
                reserve.pad(f, self._code.buffer_word(BufferWord.DATA), offset, start)

    def _make_way(self) -> None:
        """Find room in a ring; Python switches or ends what is full."""
        f, needed, alignment = self._code.f, self._layout.needed, self._layout.alignment
        self._code.offset.set(reserve.UNKNOWN)
        if self._staged:
            make_way = self.module.external("make_way", 3)
            self._code.offset.set(f.call(make_way, self._code.buffer.get(), needed, alignment))
        with f.when(f.eq(self._code.offset.get(), reserve.UNKNOWN), likely=not self._staged):
            self._code.offset.set(self._code.upcall(Upcall.RESERVE, needed, alignment))
            f.ret_if(f.eq(self._code.offset.get(), _NO_SPACE))

    def _scratch(self) -> None:
        """Say where scratch space is: behind the reservation, or in a half of its own."""
        f = self._code.f
        base = self._code.buffer_word(BufferWord.SCRATCH)
        end = f.add(self._code.offset.get(), self._layout.needed)
        start = f.add(base, f.select(f.ne(self._code.buffer_word(BufferWord.FOLLOWS), 0), end, 0))
        self._code.put("scratch_base", start)
        self._code.put("scratch_pointer", start)
        self._code.put("scratch_end", f.add(base, self._code.buffer_word(BufferWord.SIZE)))

    def _action(self, index: int, placed: Placed, computed: _Value) -> None:
        value = computed.write()
        if computed.faults:
            self._code.check(index + 1)
        before = self._values[-1] if self._values else 0
        self._values.append(value)
        kind = placed.action.kind
        if kind is ActionKind.SPECULATE:
            self._speculate(value)
        elif kind in _SPECULATING:
            self._code.f.call(self.module.external(_SPECULATING[kind], 1), value)
        elif kind is ActionKind.EXIT:
            self._code.upcall(Upcall.EXIT, value)
            self._written.write(index, placed, value, before)
        elif kind in _DESTRUCTIVE:
            self._code.upcall(Upcall.EFFECT, int(kind), value)
        else:
            self._written.write(index, placed, value, before)
            return
        self._code.check(index + 1)

    def _speculate(self, value: Word) -> None:
        """Let the record go to a speculation's buffer."""
        speculate = self.module.external("speculate", 3)
        found = self._code.f.call(speculate, value, self._layout.needed, self._layout.alignment)
        with self._code.f.when(self._code.f.ne(found, 0)):
            self._code.buffer.set(found)
            self._code.offset.set(self._code.get("room"))
            if not self._staged:
                self._code.base.set(self._code.reservation())

    def _aggregate(
        self, index: int, placed: Placed, computed: _Value, tuple_: Sequence[tuple[int, Placed, _Value]]
    ) -> None:
        """Aggregate a tuple, which stands between the id slot and the value.

        A key that is always the same for an enabling is looked up once, until the buffer is
        emptied.
        """
        assert placed.aggregating is not None
        f, kind, function = self._code.f, placed.action.kind, placed.aggregating.function
        buffer, number = self.module.symbol("aggregation"), self._aggregations
        self._aggregations += 1
        count = sum(action.aggregating is not None for action in self._layout.actions)
        memo = EcbWord.AGGREGATIONS + count + 2 * number
        found, epoch = f.variable(0), f.load(buffer, WORD * AggregationWord.EPOCH)
        fixed = all(_is_fixed(part) for _, part, _ in tuple_)
        if fixed:
            with f.when(f.eq(self._code.ecb_word(memo), epoch), likely=True):
                found.set(self._code.ecb_word(memo + 1))
        with f.when(f.eq(found.get(), 0)) if fixed else nullcontext():
            for part in tuple_:
                self._action(*part)
        value = computed.write()
        if computed.faults:
            self._code.check(index + 1)
        self._values.append(value)
        increment = self._values[index - 1] if placed.aggregating.has_increment else 1
        with f.when(f.eq(found.get(), 0)):
            start = placed.aggregating.base + ID_SIZE
            self._code.fill_gaps(start, placed.offset, self._layout.actions[placed.aggregating.first : index])
            which = self._code.ecb_word(EcbWord.AGGREGATIONS + number)
            rest = (placed.offset - start, kind_word(kind, function), which, function.initial)
            found.set(f.call(self.module.external("locate", 6), buffer, self._code.place(start), *rest))
            if fixed:
                with f.when(f.ugt(found.get(), max(Outcome)), likely=True):
                    f.store(self._code.ecb, found.get(), WORD * (memo + 1))
                    f.store(self._code.ecb, epoch, WORD * memo)
        with f.when(f.ugt(found.get(), max(Outcome)), likely=True):
            apply(f, kind, placed.argument, found.get(), value, increment)
        with f.when(f.eq(found.get(), Outcome.OTHER), likely=False):
            f.store(self._code.core, f.or_(self._code.flags(), ILLOP), FLAGS_OFFSET)
        self._code.check(index + 1)

    def _finish(self) -> None:
        """Write the header, and make the record count."""
        f = self._code.f
        kept = [placed for placed in self._layout.actions if not placed.in_tuple and placed.aggregating is None]
        self._code.fill_gaps(HEADER_SIZE, self._layout.size, kept)
        time = f.word(_UNTIMED) if self._speculates else self._code.now()
        place = self._code.place(0)
        f.store(place, self._code.ecb_word(EcbWord.EPID), size=4)
        f.store(place, f.lshr(time, _HALF), 4, size=4)
        f.store(place, time, 8, size=4)
        if self._staged:
            f.copy(self._code.reservation(), place, self._layout.size)
        self._code.put_buffer(BufferWord.OFFSET, f.add(self._code.offset.get(), self._layout.size))


# Actions on a speculation, by the functions that do them.
_SPECULATING: Final = {ActionKind.COMMIT: "commit", ActionKind.DISCARD: "discard"}
