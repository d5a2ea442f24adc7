"""The layout of an enabling's data: sizes and offsets of the records of an ECB.

    0    EPID, time stamp (three words)           written when anything is recorded
    12   the records of the actions, each aligned
    -    size: the end of the kept part
         a tuple and its value, while they are aggregated
    -    needed: the reserved size

Source: FreeBSD dtrace.c dtrace_ecb_action_add(), dtrace_ecb_aggregation_create(),
dtrace_ecb_resize().
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final

from emu.support.immutable import immutable
from trapline.framework.base.dif import Op, index, opcode
from trapline.framework.base.program import (
    BY_REFERENCE,
    BY_USER_REFERENCE,
    ActionDescription,
    ActionKind,
    Difo,
    EcbDescription,
    TypeKind,
)
from trapline.framework.buffers.aggfuncs import AggregatingFunction, ParameterError, aggregating_function

HEADER_SIZE: Final = 12
# Size of an EPID or aggregation id, and the least alignment.
ID_SIZE: Final = 4
_WORD: Final = 8


class LayoutError(ValueError):
    """An action list that cannot be enabled (EINVAL)."""


@immutable
class Aggregating:
    """The data of an aggregating action, besides the place of its value."""

    function: AggregatingFunction
    first: int
    """Index of the action that is the tuple's first element."""
    base: int
    """Offset of the id slot, before the tuple."""
    has_increment: bool
    """Whether the last element of the tuple is really the increment."""


@immutable
class Placed:
    """An action with its place in the record."""

    action: ActionDescription
    size: int
    alignment: int
    argument: int
    offset: int = 0
    in_tuple: bool = False
    aggregating: Aggregating | None = None


@immutable
class RecordLayout:
    """The record of an ECB."""

    size: int
    """Bytes kept; 0: nothing is recorded."""
    needed: int
    alignment: int
    actions: tuple[Placed, ...]


Options = Mapping[str, int]
# (action, options) -> size of its record, and its complete argument.  Raises LayoutError.
_Sizer = Callable[[ActionDescription, Options], tuple[int, int]]


def _difo(action: ActionDescription) -> Difo:
    if action.difo is None:
        raise LayoutError(f"{action.kind.name} needs an expression")
    return action.difo


def _nothing(action: ActionDescription, _options: Options) -> tuple[int, int]:
    return 0, action.argument


def _expression_only(action: ActionDescription, _options: Options) -> tuple[int, int]:
    _difo(action)
    return 0, action.argument


def _value(action: ActionDescription, options: Options) -> tuple[int, int]:
    returns = _difo(action).returns
    if returns.size == 0 and returns.kind == TypeKind.STRING:
        if not returns.flags & (BY_REFERENCE | BY_USER_REFERENCE):
            raise LayoutError("a string is recorded by reference")
        return options["strsize"], action.argument
    return returns.size, action.argument


def _by_value(size: int, recorded: int) -> _Sizer:
    """Make the rule for an action that takes a value of one size only."""

    def sizer(action: ActionDescription, _options: Options) -> tuple[int, int]:
        returns = _difo(action).returns
        if returns.size != size or returns.flags & BY_REFERENCE:
            raise LayoutError(f"{action.kind.name} takes a value of {size} bytes")
        return recorded, action.argument

    return sizer


def _stack(action: ActionDescription, options: Options) -> tuple[int, int]:
    frames = action.argument or options["stackframes"]
    return frames * _WORD, frames


def _ustack(action: ActionDescription, options: Options) -> tuple[int, int]:
    strings, frames = action.argument >> 32, action.argument & 0xFFFF_FFFF
    if action.kind == ActionKind.JSTACK:
        strings = strings or options["jstackstrsize"]
        frames = frames or options["jstackframes"]
    frames = frames or options["ustackframes"]
    return round_up((frames + 1) * _WORD + strings, _WORD), strings << 32 | frames


_SIZERS: Final[Mapping[ActionKind, _Sizer]] = {
    ActionKind.DIFEXPR: _value,
    ActionKind.EXIT: _by_value(4, 4),
    ActionKind.PRINTF: _value,
    ActionKind.PRINTA: _value,
    ActionKind.LIBACT: _value,
    ActionKind.TRACEMEM: _value,
    ActionKind.TRACEMEM_DYNSIZE: _value,
    ActionKind.PRINTM: _value,
    ActionKind.USTACK: _ustack,
    ActionKind.JSTACK: _ustack,
    ActionKind.USYM: _by_value(_WORD, 2 * _WORD),
    ActionKind.UMOD: _by_value(_WORD, 2 * _WORD),
    ActionKind.UADDR: _by_value(_WORD, 2 * _WORD),
    ActionKind.STOP: _nothing,
    ActionKind.RAISE: _expression_only,
    ActionKind.SYSTEM: _value,
    ActionKind.FREOPEN: _value,
    ActionKind.STACK: _stack,
    ActionKind.SYM: _by_value(_WORD, _WORD),
    ActionKind.MOD: _by_value(_WORD, _WORD),
    ActionKind.BREAKPOINT: _nothing,
    ActionKind.PANIC: _nothing,
    ActionKind.CHILL: _expression_only,
    ActionKind.SPECULATE: _expression_only,
    ActionKind.COMMIT: _expression_only,
    ActionKind.DISCARD: _expression_only,
}


def round_up(size: int, alignment: int) -> int:
    """Round up to a multiple of a power of two."""
    return (size + alignment - 1) & -alignment


def _alignment(size: int) -> int:
    """Return the largest power of two up to 8 that divides a size; 1 for size 0."""
    return min(size & -size, _WORD) if size else 1


def lay_out(description: EcbDescription, options: Options) -> RecordLayout:
    """Place the actions of an enabling.  Raises LayoutError for a list that FreeBSD refuses."""
    placed: list[Placed] = []
    kinds: set[ActionKind] = set()
    for action in description.actions:
        if action.kind.is_aggregation:
            placed.append(_add_aggregation(placed, kinds, action))
        else:
            placed.append(_add(placed, kinds, action, options))
        kinds.add(action.kind)
    return _resize(placed)


def _add(placed: list[Placed], before: AbstractSet[ActionKind], action: ActionDescription, options: Options) -> Placed:
    """Check an action against those before it, of the kinds `before`, and size it."""
    sizer = _SIZERS.get(action.kind)
    if sizer is None:
        raise LayoutError(f"{action.kind.name} is not an action")
    size, argument = sizer(action, options)
    if ActionKind.COMMIT in before and (size or action.kind in (ActionKind.SPECULATE, ActionKind.COMMIT)):
        raise LayoutError("after commit() nothing may be recorded, committed or speculated")
    if action.kind in (ActionKind.SPECULATE, ActionKind.COMMIT) and any(other.aggregating for other in placed):
        raise LayoutError("an aggregating clause can neither speculate nor commit")
    if action.kind == ActionKind.SPECULATE and any(other.size and not other.in_tuple for other in placed):
        raise LayoutError("speculate() may not follow what records data")
    return Placed(action, size, _alignment(size), argument)


def _add_aggregation(placed: list[Placed], before: AbstractSet[ActionKind], action: ActionDescription) -> Placed:
    """Claim the tuple before an aggregating action."""
    if ActionKind.COMMIT in before or ActionKind.SPECULATE in before:
        raise LayoutError("a speculating or committing clause cannot aggregate")
    try:
        function = aggregating_function(action.kind, action.argument)
    except ParameterError as error:
        raise LayoutError(str(error)) from None
    first = len(placed) - action.tuple_size
    if action.tuple_size == 0 or first < 0 or any(other.aggregating or other.in_tuple for other in placed[first:]):
        raise LayoutError(f"{action.kind.name} has {action.tuple_size} key elements, but fewer actions before it")
    for place in range(first, len(placed)):
        alignment = placed[place].alignment
        placed[place] = replace(
            placed[place], in_tuple=True, alignment=max(alignment, ID_SIZE) if place == first else alignment
        )
    has_increment = placed[-1].action.kind == ActionKind.DIFEXPR and placed[-1].size == 0
    return Placed(
        action,
        function.size,
        _alignment(function.size),
        action.argument,
        aggregating=Aggregating(function, first, 0, has_increment),
    )


def _resize(placed: Sequence[Placed]) -> RecordLayout:
    """Give every action its offset."""
    size = needed = HEADER_SIZE
    alignment = ID_SIZE
    temporary: int | None = None
    base = 0
    done: list[Placed] = []
    for item in placed:
        alignment = max(alignment, item.alignment)
        if item.in_tuple and temporary is None:
            # The first element goes 4 bytes into an 8-byte block: the id slot before it is aligned.
            temporary = round_up(size - ID_SIZE, _WORD) + ID_SIZE
            base = temporary - ID_SIZE
        if item.in_tuple or item.aggregating:
            assert temporary is not None
            offset = round_up(temporary, item.alignment)
            temporary = offset + item.size
        else:
            offset = round_up(size, item.alignment)
            size = offset + item.size
            needed = max(needed, size)
        if item.aggregating:
            assert temporary is not None
            needed = max(needed, temporary)
            temporary = None
            item = replace(item, aggregating=replace(item.aggregating, base=base))  # noqa: PLW2901  the finished item
        done.append(replace(item, offset=offset))
    only_speculates = len(placed) == 1 and placed[0].action.kind == ActionKind.SPECULATE
    if placed and not only_speculates and size == HEADER_SIZE:
        size = 0
    return RecordLayout(round_up(size, ID_SIZE), round_up(needed, ID_SIZE), alignment, tuple(done))


def variable_of(first: Placed) -> int:
    """Return the variable id that a tuple's first element loads; 0 if it is not a constant."""
    difo = first.action.difo
    if difo is None or opcode(difo.code[0]) != Op.SETX:
        return 0
    return difo.integers[index(difo.code[0])]
