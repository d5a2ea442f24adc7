"""The structure of a record for -x oformat: its statements as objects with the names of dtrace(1).

Source: the manual page dtrace(1) of FreeBSD 15, STRUCTURED OUTPUT.  What it leaves open is so: the
keys of an aggregation are objects as trace() writes them, and bytes are hexadecimal text.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from trapline.consumer.aggregations.aggregate import plain_value, quotient
from trapline.consumer.aggregations.distribution import DISTRIBUTIONS, split
from trapline.consumer.aggregations.order import Order
from trapline.consumer.records.printf import USER_STACKS
from trapline.consumer.records.report import SYMBOLIC
from trapline.consumer.records.values import value_reader
from trapline.consumer.text.default_format import UNSIGNED
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trapline.consumer.aggregations.aggregate import Entry
    from trapline.consumer.records.statements import Firing, Step
    from trapline.consumer.session import Session
    from trapline.framework.base.device import RecordDescription

# An object of the output: a field is a text, a number, or a list of objects.
Object: TypeAlias = dict[str, Any]

_STACKS: Final = {ActionKind.STACK: "stack-frames", **dict.fromkeys(USER_STACKS, "ustack-frames")}
_MEMORY: Final = {
    ActionKind.TRACEMEM: "tracemem",
    ActionKind.TRACEMEM_DYNSIZE: "tracemem",
    ActionKind.PRINTM: "printm",
}


def _symbol(name: str) -> Object:
    """Return the parts of a name such as kernel`malloc+0x12, or of an address without one."""
    module, mark, rest = name.partition("`")
    if not mark:
        return {"offset": name}
    symbol, plus, offset = rest.rpartition("+")
    return {"module": module, "name": symbol, "offset": offset} if plus else {"module": module, "name": rest}


def _frame(name: str) -> Object:
    return {"symbol": name, **_symbol(name)}


def _named(action: ActionKind, name: str) -> Object:
    """Return the object of sym(), mod(), usym(), umod() or uaddr()."""
    parts = _symbol(name) if action is ActionKind.SYM else {}
    return {action.name.lower(): name, **{"object" if key == "module" else key: part for key, part in parts.items()}}


def _plain(value: Any) -> Any:
    return f"0x{value.hex()}" if isinstance(value, bytes) else value


class Structure:
    """Makes the objects of one session's records; `typed` makes those of print()."""

    def __init__(self, session: Session, typed: Callable[[str, bytes], list[Object] | None]) -> None:
        self._session = session
        self._typed = typed

    def statement(self, step: Step, firing: Firing) -> list[Object]:
        """Return the objects of a statement that shows something."""
        first = step.records[0]
        match first.action:
            case ActionKind.PRINTF if first.format and step.text is not None:
                message = step.text(firing.data, firing.offset)
                values = [self._datum(one, firing.data, firing.offset) for one in step.records if one.size]
                return [{"message": message}, *(values or [{"value": 0}])]
            case ActionKind.PRINTA:
                start = firing.offset
                variables = [UNSIGNED[one.size](firing.data, start + one.offset) for one in step.records]
                return [self.aggregation(one, self._session.aggregate.variable(one)) for one in variables]
            case action if action in _MEMORY and step.value is not None:
                return [{_MEMORY[action]: _plain(step.value(firing.data, firing.offset))}]
            case ActionKind.DIFEXPR if first.format:
                start = firing.offset + first.offset
                name = self._session.device.format(first.format)
                objects = self._typed(name, firing.data[start : start + first.size])
                return [self._datum(first, firing.data, firing.offset) if objects is None else {"type": objects}]
        return [self._datum(first, firing.data, firing.offset)]

    def _datum(self, record: RecordDescription, data: bytes, base: int) -> Object:
        value = value_reader(record, self._session.symbols)(data, base)
        if record.action in _STACKS:
            return {_STACKS[record.action]: [_frame(frame.name) for frame in value]}
        if record.action in SYMBOLIC:
            return _named(record.action, value)
        return {"value": _plain(value)}

    def aggregation(self, variable: int, entries: Iterable[Entry]) -> Object:
        """Return the object of an aggregation, with its elements in the order of dtrace(1)."""
        ordered = Order.of(self._session.options).sorted(entries)
        self._session.aggregate.printed.update(entry.description.id for entry in ordered)
        name = self._session.aggregation_names.get(variable, "")
        return {"aggregation-data": [self._element(entry) for entry in ordered], "aggregation-name": name}

    def unprinted(self) -> list[Object]:
        """Return the objects of the aggregations that printa() has not shown."""
        aggregate = self._session.aggregate
        rest = [entry for entry in aggregate if entry.description.id not in aggregate.printed]
        groups = groupby(sorted(rest, key=_variable), key=_variable)
        return [self.aggregation(variable, group) for variable, group in groups]

    def _element(self, entry: Entry) -> Object:
        action, words = entry.action, entry.words
        keys = [self._datum(key, entry.data, 0) for key in entry.keys]
        if action not in DISTRIBUTIONS:
            return {"keys": keys, action.name.lower(): plain_value(action, words, entry.normal)}
        buckets, counts = split(action, words)
        rows = [
            {"value": _edge(buckets.labels[row]), "count": quotient(counts[row], entry.normal)}
            for row in buckets.shown(counts)
        ]
        return {"keys": keys, "buckets": rows}


def _variable(entry: Entry) -> int:
    return entry.description.variable


def _edge(label: str) -> int | str:
    """Return the left side of a row; what is below or above the range is a text, such as "< 0"."""
    return int(label) if label.lstrip("-").isdigit() else label
