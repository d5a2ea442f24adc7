"""The actions of an enabling that do more than record a value.

Source: FreeBSD dtrace.c dtrace_probe(), dtrace_action_raise(), dtrace_action_ustack() and the like.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from emu.support.words import WORD_MASK
from trapline.framework.base.context import UNREAD, Context
from trapline.framework.base.faults import BADADDR, DROP, ILLOP
from trapline.framework.base.program import BY_REFERENCE, BY_USER_REFERENCE, ActionKind, TypeKind
from trapline.framework.base.stacks import kernel_frames, user_frames
from trapline.framework.buffers.aggbuffer import Outcome

if TYPE_CHECKING:
    from trapline.framework.buffers.aggbuffer import AggregationBuffer
    from trapline.framework.buffers.layout import Placed
    from trapline.framework.dif.operations import Operations

# First number that is not a signal (FreeBSD sys/signal.h).
NSIG: Final = 32
CHILL_MAX: Final = 500_000_000
# chill() may spend half a second of every second.
CHILL_INTERVAL: Final = 1_000_000_000
_WORD: Final = 8

# (context, value of the expression) -> the bytes to record.
ToBytes = Callable[[Context, int], bytes]


def recorder(placed: Placed, operations: Operations) -> ToBytes | None:
    """Return the function that turns an action's value into bytes; None: it stays a number."""
    make = _RECORDERS.get(placed.action.kind)
    if make is not None:
        return make(placed, operations)
    if placed.action.difo is None:
        return None
    flags = placed.action.difo.returns.flags
    if flags & (BY_REFERENCE | BY_USER_REFERENCE):
        return _by_reference(placed, operations)
    return None


def _by_reference(placed: Placed, operations: Operations) -> ToBytes:
    """Copy the data that a value points to (dtrace_store_by_ref)."""
    assert placed.action.difo is not None
    returns, size, memory = placed.action.difo.returns, placed.size, operations.memory
    user = bool(returns.flags & BY_USER_REFERENCE)
    read: Callable[[int, int], bytes]
    if returns.kind == TypeKind.STRING:
        read = memory.user_string if user else memory.string
    else:
        read = memory.read_user if user else memory.read

    def record(_ctx: Context, value: int) -> bytes:
        return read(value, size) if user or operations.can_load(value, size) else b""

    return record


def _stack(placed: Placed, operations: Operations) -> ToBytes:
    world, limit = operations.world, placed.argument

    def record(ctx: Context, _value: int) -> bytes:
        return _words(kernel_frames(world, ctx)[:limit])

    return record


def _user_stack(placed: Placed, operations: Operations) -> ToBytes:
    world, limit = operations.world, placed.argument & 0xFFFF_FFFF

    def record(ctx: Context, _value: int) -> bytes:
        return _words([operations.thread(ctx).pid, *user_frames(world)[:limit]])

    return record


def _user_symbol(_placed: Placed, operations: Operations) -> ToBytes:
    return lambda ctx, value: _words((operations.thread(ctx).pid, value))


def _memory_reference(placed: Placed, operations: Operations) -> ToBytes:
    """Record the length and the bytes of a memref(), which is in scratch space (printm)."""
    memory, core = operations.memory, operations.core

    def record(ctx: Context, value: int) -> bytes:
        if not operations.in_scratch(ctx, value, 2 * _WORD):
            memory.fault(BADADDR, value)
            return b""
        address, size = struct.unpack("<QQ", memory.read(value, 2 * _WORD))
        if size + _WORD > placed.size:
            core.flags |= DROP
            return b""
        return _words((size,)) + memory.read(address, size)

    return record


_RECORDERS: Final[dict[ActionKind, Callable[[Placed, Operations], ToBytes]]] = {
    ActionKind.STACK: _stack,
    ActionKind.USTACK: _user_stack,
    ActionKind.JSTACK: _user_stack,
    ActionKind.USYM: _user_symbol,
    ActionKind.UMOD: _user_symbol,
    ActionKind.UADDR: _user_symbol,
    ActionKind.PRINTM: _memory_reference,
}


def _words(values: Sequence[int]) -> bytes:
    return struct.pack(f"<{len(values)}Q", *(value & WORD_MASK for value in values))


# (context, value of the expression); changes the guest.
Effect = Callable[[Context, int], None]


class Effects:
    """The destructive actions of one consumer."""

    def __init__(self, operations: Operations) -> None:
        self._operations = operations
        self._abilities = operations.world.abilities
        self._chilled: dict[int, tuple[int, int]] = {}
        self.table: dict[ActionKind, Effect] = {
            ActionKind.STOP: lambda _ctx, _value: self._do(self._abilities.stop),
            ActionKind.BREAKPOINT: lambda _ctx, _value: self._do(self._abilities.breakpoint),
            ActionKind.PANIC: self._panic,
            ActionKind.RAISE: self._raise,
            ActionKind.CHILL: self._chill,
        }

    def _do(self, ability: Callable[[], None] | None) -> None:
        if ability is None:
            self._operations.core.flags |= ILLOP
        else:
            ability()

    def _panic(self, ctx: Context, _value: int) -> None:
        panic = self._abilities.panic
        probe = ctx.probe.description
        self._do(panic and (lambda: panic(f"dtrace: panic action at probe {probe} (ecb {ctx.epid})")))

    def _raise(self, _ctx: Context, value: int) -> None:
        signal = self._abilities.signal
        self._do(signal and (lambda: signal(value)) if value < NSIG else None)

    def _chill(self, ctx: Context, value: int) -> None:
        """Let time pass, unless this CPU has done so for too long in the last second."""
        now = self._operations.world.guest.now()
        start, spent = self._chilled.get(ctx.cpu, (now, 0))
        if now - start > CHILL_INTERVAL:
            start, spent = now, 0
        if spent + value > CHILL_MAX:
            self._operations.core.flags |= ILLOP
            return
        self._chilled[ctx.cpu] = (start, spent + value)
        ctx.timestamp = UNREAD
        if self._abilities.chill is not None:
            self._abilities.chill(value)


# (buffer, tuple, value, increment)
Aggregate = Callable[["AggregationBuffer", bytes, int, int], None]


def aggregator(placed: Placed, aggregation_id: int, operations: Operations) -> Aggregate:
    """Return the function that adds one more value to an aggregation (dtrace_aggregate)."""
    assert placed.aggregating is not None
    kind, function, core = placed.action.kind, placed.aggregating.function, operations.core
    apply, other = function.apply, -Outcome.OTHER

    def aggregate(buffer: AggregationBuffer, key: bytes, value: int, increment: int) -> None:
        at = buffer.locate(key, kind, aggregation_id, function)
        if at > 0:
            apply(buffer.data, at, value, increment)
        elif at == other:
            core.flags |= ILLOP  # the same tuple, aggregated by another function

    return aggregate
