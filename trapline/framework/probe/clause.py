"""The meaning of a clause: its steps when it fires, which the DIF machine and Python do.

`trapline.framework.native.ecb` makes machine code of the same steps; tests hold the two equal.

    skip unless tracing is on
    reserve space in the buffer
    the predicate
    each action: its value, what it does with that, and each time a test for faults
    the header, and the record counts

The record becomes part of the buffer at the very end: after a fault, a drop or a commit on the way
nothing remains of it.

Source: FreeBSD dtrace.c dtrace_probe(), dtrace_ecb_action_add().
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from emu.displaced.cpu_core import CoreWord
from trapline.framework.base.context import UNREAD
from trapline.framework.base.faults import DROP, ERROR, NO_ERROR
from trapline.framework.base.program import ActionKind
from trapline.framework.buffers.buffers import NO_SPACE, LinearBuffer, PrincipalBuffer
from trapline.framework.buffers.layout import ID_SIZE, Placed
from trapline.framework.dif.interpreter import Loaded, constant
from trapline.framework.dif.needs import goes_stale, needs_scratch
from trapline.framework.probe.actions import Aggregate, aggregator, recorder
from trapline.framework.probe.ecb import Clause, Ecb, Form, Run
from trapline.framework.probe.runtime import Runtime

_FLAGS: Final = int(CoreWord.FLAGS)
# EPID, and the halves of the time stamp.
_HEADER: Final = struct.Struct("<III")
# Time stamp of a speculated record, until it is committed.
_UNTIMED: Final = (1 << 64) - 1


def runner(ecb: Ecb, runtime: Runtime) -> Run:
    """Return what runs an enabling: machine code if there is any, and the framework is not asked."""
    form = ecb.clause.form
    return form.native.run(ecb) if form.native and not runtime.is_meta(ecb.probe) else form.make(ecb)


class _Action:
    """An action, with all that is the same whenever it fires."""

    def __init__(self, index: int, placed: Placed, before: ActionKind | None, runtime: Runtime) -> None:
        difo = placed.action.difo
        self.index = index
        self.kind = placed.action.kind
        self.size, self.offset = placed.size, placed.offset
        self.aggregating = placed.aggregating
        self.known = 0 if difo is None else constant(difo)
        self.loaded: Loaded | None = None if difo is None else runtime.machine.load(difo)
        self.to_bytes = recorder(placed, runtime.operations)
        self.effect = runtime.effects.table.get(self.kind)
        self.is_recorded = bool(placed.size) and not placed.in_tuple
        self.is_cut = before is ActionKind.TRACEMEM_DYNSIZE
        """Whether the value before it is the number of bytes to record."""


class _Firing:
    """A clause that is firing: where its record goes, and what it is so far."""

    __slots__ = ("buffer", "contents", "cpu", "offset", "record", "values")

    def __init__(self, buffer: LinearBuffer, offset: int, size: int, cpu: int) -> None:
        self.buffer = buffer
        self.offset = offset
        self.record = bytearray(size)
        self.cpu = cpu
        self.values: list[int] = []
        """The values of the actions so far, as numbers."""
        self.contents: list[bytes] = []
        """The values of the actions so far, as bytes of the record."""


class PlainClause:
    """A clause that the DIF machine runs; `make_native` is called once it has fired often enough."""

    def __init__(self, clause: Clause, runtime: Runtime, make_native: Callable[[Form], None]) -> None:
        self._runtime = runtime
        self._clause = clause
        self._layout = layout = clause.layout
        self._core = runtime.world.core.words
        self._left = runtime.worth_compiling
        self._make_native = make_native
        codes = [code for difo in clause.objects for code in difo.code]
        self._goes_stale = any(map(goes_stale, codes))
        self._needs_scratch = any(map(needs_scratch, codes))
        self._predicate = None if clause.predicate is None else runtime.machine.load(clause.predicate)
        kinds = [placed.action.kind for placed in layout.actions]
        self._actions = [
            _Action(index, placed, kinds[index - 1] if index else None, runtime)
            for index, placed in enumerate(layout.actions)
        ]
        self._speculates = ActionKind.SPECULATE in kinds
        self._records = bool(layout.size) and ActionKind.COMMIT not in kinds

    def make(self, ecb: Ecb) -> Run:
        """Return what runs an enabling."""
        operations = self._runtime.operations
        aggregating = zip(self._clause.aggregating, ecb.aggregation_ids, strict=True)
        aggregates = [aggregator(placed, number, operations) for placed, number in aggregating]
        return partial(self._run, ecb, not self._runtime.is_meta(ecb.probe), aggregates)

    def _run(self, ecb: Ecb, ordinary: bool, aggregates: Sequence[Aggregate], args: tuple[int, ...]) -> None:
        runtime = self._runtime
        if not (runtime.active if ordinary else runtime.meta(ecb.probe, args)):
            return
        if ordinary and self._left:
            self._left -= 1
            if not self._left:
                self._make_native(self._clause.form)
        if self._goes_stale:
            runtime.clean_if_due()
        cpu = runtime.world.guest.cpu
        buffer, needed = runtime.buffers[cpu], self._layout.needed
        offset = buffer.reserve(needed, self._layout.alignment)
        if offset == NO_SPACE:
            return
        self._core[_FLAGS] &= NO_ERROR
        self._begin(ecb, args, cpu, buffer, offset + needed)
        firing = _Firing(buffer, offset, needed, cpu)
        failed_at = self._act(firing, iter(aggregates).__next__)
        if failed_at is not None:
            runtime.failed(ecb, buffer, failed_at)

    def _begin(self, ecb: Ecb, args: tuple[int, ...], cpu: int, buffer: PrincipalBuffer, end: int) -> None:
        """Prepare the context of the DIF objects; `end` is that of the reservation."""
        ctx = self._runtime.context
        if ctx.args is not args:  # strtok() continues where it was in the other enablings of the same firing
            ctx.strtok = ctx.strtok_limit = 0
        ctx.args, ctx.cpu, ctx.probe, ctx.thread, ctx.fault_offset = args, cpu, ecb.probe, None, -1
        ctx.timestamp = ctx.walltimestamp = UNREAD
        ctx.epid = ecb.epid
        ctx.scratch_base = ctx.scratch_ptr = ctx.scratch_end = 0
        if self._needs_scratch:
            base = buffer.scratch.base
            ctx.scratch_base = ctx.scratch_ptr = base + buffer.scratch_start(end)
            ctx.scratch_end = base + buffer.size

    def _act(self, firing: _Firing, next_aggregate: Callable[[], Aggregate]) -> int | None:
        """Evaluate the predicate, do the actions, and write the record.

        Return where it failed: 0 for the predicate, else the number of the action.
        """
        core, ctx, run = self._core, self._runtime.context, self._runtime.machine.run
        if self._predicate is not None:
            wanted = run(self._predicate, ctx)
            if core[_FLAGS] & ERROR:
                return 0
            if not wanted:
                return None
        for action in self._actions:
            value = action.known
            if value is None:
                assert action.loaded is not None
                value = run(action.loaded, ctx)
            if not core[_FLAGS] & ERROR:
                if action.aggregating is None:
                    self._do(firing, action, value)
                else:
                    self._aggregate(firing, action, value, next_aggregate())
            if core[_FLAGS] & ERROR:
                return action.index + 1
        if self._records:
            self._finish(firing)
        return None

    def _do(self, firing: _Firing, action: _Action, value: int) -> None:
        """Do an action that does not aggregate."""
        content, kind = b"", action.kind
        if kind is ActionKind.SPECULATE:
            self._speculate(firing, value)
        elif kind is ActionKind.COMMIT:
            self._runtime.speculations.commit(value, firing.cpu)
        elif kind is ActionKind.DISCARD:
            self._runtime.speculations.discard(value, firing.cpu)
        elif action.effect is not None:
            action.effect(self._runtime.context, value)
        else:
            if kind is ActionKind.EXIT:
                self._runtime.exit()
            if action.to_bytes is not None:
                content = action.to_bytes(self._runtime.context, value)
                if action.is_cut and firing.values[-1]:
                    content = content[: firing.values[-1]]
                content = content[: action.size].ljust(action.size, b"\0")
            elif action.size:
                value &= (1 << 8 * action.size) - 1
                content = value.to_bytes(action.size, "little")
            if action.is_recorded:
                firing.record[action.offset : action.offset + action.size] = content
        firing.values.append(value)
        firing.contents.append(content)

    def _speculate(self, firing: _Firing, number: int) -> None:
        """Let the record go to a speculation's buffer."""
        buffer = self._runtime.speculations.buffer(number, firing.cpu)
        if buffer is not None:
            firing.buffer = buffer
            firing.offset = buffer.reserve(self._layout.needed, self._layout.alignment)
        if buffer is None or firing.offset == NO_SPACE:
            self._core[_FLAGS] |= DROP

    def _aggregate(self, firing: _Firing, action: _Action, value: int, aggregate: Aggregate) -> None:
        """Aggregate a value under a tuple: the bytes between the id slot and the value."""
        aggregating = action.aggregating
        assert aggregating is not None
        start = aggregating.base + ID_SIZE
        key = bytearray(action.offset - start)
        for element in self._actions[aggregating.first : action.index]:
            at = element.offset - start
            key[at : at + element.size] = firing.contents[element.index]
        increment = firing.values[-1] if aggregating.has_increment else 1
        aggregate(self._runtime.aggregation_buffers[firing.cpu], bytes(key), value, increment)
        firing.values.append(value)
        firing.contents.append(b"")

    def _finish(self, firing: _Firing) -> None:
        """Write the record with its header, and make it count."""
        time = _UNTIMED if self._speculates else self._runtime.world.guest.now()
        _HEADER.pack_into(firing.record, 0, self._runtime.context.epid, time >> 32, time & 0xFFFF_FFFF)
        end = firing.offset + self._layout.size
        firing.buffer.data[firing.offset : end] = firing.record[: self._layout.size]
        firing.buffer.offset = end
