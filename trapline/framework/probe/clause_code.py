"""Enabled clauses as Python functions.

The function is made of source text, so that a firing is the steps that its clause needs and no
others:

    skip unless tracing is on
    reserve room in the buffer
    the predicate
    each action: its value, then a test for faults
    one pack of header and values

The record becomes part of the buffer at the very end: after a fault, a drop or a commit on the way
nothing remains of it.

Source: FreeBSD dtrace.c dtrace_probe(), dtrace_ecb_action_add().
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat
from typing import Any, Final

from emu.displaced.cpu_core import CoreWord
from trapline.framework.base import dif
from trapline.framework.base.blocks import BufferWord
from trapline.framework.base.context import UNREAD
from trapline.framework.base.dif import Op, Subr
from trapline.framework.base.faults import DROP, ERROR, NO_ERROR
from trapline.framework.base.program import ActionKind, Difo
from trapline.framework.buffers.layout import HEADER_SIZE, ID_SIZE, Placed
from trapline.framework.dif.needs import goes_stale, needs_scratch
from trapline.framework.dif.translate import constant
from trapline.framework.probe.actions import aggregator, recorder
from trapline.framework.probe.ecb import Clause, Ecb, Form, Maker, Run
from trapline.framework.probe.runtime import Runtime

_FLAGS: Final = int(CoreWord.FLAGS)
_OFFSET: Final = int(BufferWord.OFFSET)
_LIMIT: Final = int(BufferWord.LIMIT)
_NUMBERS: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_SPECULATING: Final = (ActionKind.COMMIT, ActionKind.DISCARD)
# Time stamp of a speculated record, until it is committed.
_UNTIMED: Final = (1 << 64) - 1


def compile_clause(clause: Clause, runtime: Runtime, make_native: Callable[[Form], None]) -> Maker:
    """Return what makes the `Run` of an enabling of a clause, or of one that does the same.

    `make_native` is called with the form of the clause once it has fired often enough.
    """
    return _Compiler(clause, runtime, make_native).make()


def runner(ecb: Ecb, runtime: Runtime) -> Run:
    """Return what runs an enabling: machine code if there is any, and the framework is not asked."""
    form, ordinary = ecb.clause.form, not runtime.is_meta(ecb.probe)
    if form.native and ordinary:
        return form.native.run(ecb)
    aggregates = map(aggregator, ecb.clause.aggregating, ecb.aggregation_ids, repeat(runtime.operations))
    return form.make(ecb, ecb.probe, ordinary, ecb.epid, *aggregates)


def _uses(objects: Sequence[Difo], found: Callable[[int], bool]) -> bool:
    return any(found(code) for difo in objects for code in difo.code)


class _Compiler:
    def __init__(self, clause: Clause, runtime: Runtime, make_native: Callable[[Form], None]) -> None:
        self._predicate = clause.predicate
        self._objects = clause.objects
        self._layout = layout = clause.layout
        self._worth = runtime.worth_compiling
        self._runtime = runtime
        self._aggregates: list[str] = []
        self._format = "<III"
        self._end = HEADER_SIZE
        self._values: list[str] = []
        self._speculates = any(placed.action.kind is ActionKind.SPECULATE for placed in layout.actions)
        self._commits = any(placed.action.kind is ActionKind.COMMIT for placed in layout.actions)
        self._names: dict[str, Any] = {
            "runtime": runtime,
            "core": runtime.world.core.words,
            "guest": runtime.world.guest,
            "now": runtime.world.guest.now,
            "buffers": runtime.buffers,
            "aggregations": runtime.aggregation_buffers,
            "speculations": runtime.speculations,
            "ctx": runtime.context,
            "failed": runtime.failed,
            "left": [self._worth],
            "form": clause.form,
            "make_native": make_native,
        }

    def make(self) -> Maker:
        """Return the function that makes the `Run` of an `Ecb` from what differs in a clause."""
        body = [f"        {line}" for line in self._lines()]
        parameters = ", ".join(("ecb", "probe", "ordinary", "epid", *self._aggregates))
        source = "\n".join((f"def make({parameters}):", "    def run(args):", *body, "    return run"))
        exec(source, self._names)  # noqa: S102  made here, from a laid out enabling
        made: Maker = self._names["make"]
        return made

    def _lines(self) -> Iterator[str]:
        layout, predicate, objects = self._layout, self._predicate, self._objects
        yield "if not (runtime.active if ordinary else runtime.meta(probe, args)): return"
        if self._worth:
            yield "if ordinary:"
            yield "    left[0] -= 1"
            yield "    if not left[0]: make_native(form)"
        if _uses(objects, goes_stale):
            yield "runtime.clean_if_due()"
        yield "cpu = guest.cpu"
        yield "buffer = target = buffers[cpu]"
        yield from self._reserve()
        if layout.actions or predicate is not None:
            yield f"core[{_FLAGS}] &= {NO_ERROR}"
            yield from self._context(objects)
        if predicate is not None:
            self._names["predicate"] = self._runtime.functions.translate(predicate)
            yield "wanted = predicate(ctx)"
            yield f"if core[{_FLAGS}] & {ERROR}: failed(ecb, target, 0); return"
            yield "if not wanted: return"
        for index, placed in enumerate(layout.actions):
            yield from self._action(index, placed)
        yield from self._finish()

    def _reserve(self) -> Iterator[str]:
        """Find room: where the last record ended, if that is all there is to it."""
        needed, alignment = self._layout.needed, self._layout.alignment
        yield "control = buffer.words"
        yield f"offset = control[{_OFFSET}]"
        yield f"if offset & {alignment - 1} or offset + {needed} > control[{_LIMIT}]:"
        yield f"    offset = buffer.reserve({needed}, {alignment})"
        yield "    if offset < 0: return"

    def _context(self, objects: Sequence[Difo]) -> Iterator[str]:
        if _uses(objects, lambda code: dif.opcode(code) == Op.CALL and dif.index(code) == Subr.STRTOK):
            # strtok() continues where it was in the other enablings of the same firing.
            yield "if ctx.args is not args: ctx.strtok = ctx.strtok_limit = 0"
        yield "ctx.args = args; ctx.cpu = cpu; ctx.probe = probe; ctx.thread = None; ctx.fault_offset = -1"
        yield f"ctx.timestamp = ctx.walltimestamp = {UNREAD}; ctx.epid = epid"
        if _uses(objects, needs_scratch):
            yield "scratch = buffer.scratch"
            start = f"scratch.base + buffer.scratch_start(offset + {self._layout.needed})"
            yield f"ctx.scratch_base = ctx.scratch_ptr = {start}"
            yield "ctx.scratch_end = scratch.base + buffer.size"
        else:
            yield "ctx.scratch_base = ctx.scratch_ptr = ctx.scratch_end = 0"

    def _action(self, index: int, placed: Placed) -> Iterator[str]:
        kind = placed.action.kind
        difo = placed.action.difo
        value = f"v{index}"
        number = index + 1
        known = 0 if difo is None else constant(difo)
        if known is None:
            assert difo is not None
            self._names[f"e{index}"] = self._runtime.functions.translate(difo)
            yield f"{value} = e{index}(ctx)"
            yield self._check(number)
        else:
            yield f"{value} = {known}"
        if placed.aggregating is not None:
            yield from self._aggregate(index, placed)
        elif kind is ActionKind.EXIT:
            yield "runtime.exit()"
            yield from self._record(index, placed)
        elif kind is ActionKind.SPECULATE:
            yield f"buffer = speculations.buffer({value}, cpu)"
            yield "if buffer is not None:"
            yield f"    offset = buffer.reserve({self._layout.needed}, {self._layout.alignment})"
            yield f"if buffer is None or offset < 0: core[{_FLAGS}] |= {DROP}"
        elif kind in _SPECULATING:
            yield f"speculations.{kind.name.lower()}({value}, cpu)"
        elif kind in self._runtime.effects.table:
            self._names[f"effect{index}"] = self._runtime.effects.table[kind]
            yield f"effect{index}(ctx, {value})"
        else:
            yield from self._record(index, placed)
            return
        yield self._check(number)

    def _record(self, index: int, placed: Placed) -> Iterator[str]:
        """Turn a value into what is packed: a number cut to its size, or bytes."""
        value = f"v{index}"
        record = recorder(placed, self._runtime.operations)
        if record is not None:
            self._names[f"bytes{index}"] = record
            yield f"{value} = bytes{index}(ctx, {value})"
            if index and self._layout.actions[index - 1].action.kind is ActionKind.TRACEMEM_DYNSIZE:
                yield f"if v{index - 1}: {value} = {value}[:v{index - 1}]"
            yield self._check(index + 1)
        elif placed.size:
            yield f"{value} &= {(1 << 8 * placed.size) - 1}"
        if placed.size and not placed.in_tuple:
            self._put(placed, value, is_number=record is None)

    def _put(self, placed: Placed, value: str, *, is_number: bool) -> None:
        """Add a value to the record's format."""
        self._format += "x" * (placed.offset - self._end)
        self._format += _NUMBERS[placed.size] if is_number else f"{placed.size}s"
        self._end = placed.offset + placed.size
        self._values.append(value)

    def _aggregate(self, index: int, placed: Placed) -> Iterator[str]:
        """Pack the tuple as it stands between the id slot and the value, and aggregate."""
        assert placed.aggregating is not None
        aggregating, actions = placed.aggregating, self._layout.actions
        form, end = "<", aggregating.base + ID_SIZE
        values = []
        for place in range(aggregating.first, index):
            element = actions[place]
            if not element.size:
                continue
            form += "x" * (element.offset - end)
            is_bytes = f"bytes{place}" in self._names
            form += f"{element.size}s" if is_bytes else _NUMBERS[element.size]
            end = element.offset + element.size
            values.append(f"v{place}")
        form += "x" * (placed.offset - end)
        self._names[f"key{index}"] = struct.Struct(form).pack
        self._aggregates.append(f"aggregate{index}")
        increment = f"v{index - 1}" if aggregating.has_increment else "1"
        key = f"key{index}({', '.join(values)})"
        yield f"aggregate{index}(aggregations[cpu], {key}, v{index}, {increment})"

    def _check(self, number: int) -> str:
        return f"if core[{_FLAGS}] & {ERROR}: failed(ecb, target, {number}); return"

    def _finish(self) -> Iterator[str]:
        """Write the record, and make it count."""
        size = self._layout.size
        if not size or self._commits:
            return
        self._names["pack_into"] = struct.Struct(self._format + "x" * (size - self._end)).pack_into
        time = str(_UNTIMED) if self._speculates else "now()"
        yield f"time = {time}"
        values = "".join(f", {value}" for value in self._values)
        yield f"pack_into(buffer.data, offset, epid, time >> 32, time & 0xFFFFFFFF{values})"
        yield f"buffer.words[{_OFFSET}] = offset + {size}"
