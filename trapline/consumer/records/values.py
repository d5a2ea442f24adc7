"""Recorded data as Python values."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from trapline.consumer.records.printf import USER_STACKS
from trapline.consumer.records.report import SYMBOLIC, show_symbol
from trapline.consumer.text.columns import c_string, decode
from trapline.consumer.text.default_format import COLUMNS
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from trapline.consumer.text.symbols import Symbols
    from trapline.framework.base.device import RecordDescription

# Reads a value of a record that starts at an offset of a buffer.
Read: TypeAlias = Callable[[bytes, int], Any]


def value_reader(record: RecordDescription, symbols: Symbols) -> Read:
    """Return a reader of a record's value.

    Integers are int, with the sign they are shown with; addresses of symbols and modules are their
    names (str); stacks are tuples of `Frame`; text is str, and bytes that are not text are bytes.
    """
    offset, size = record.offset, record.size
    if record.action is ActionKind.STACK or record.action in USER_STACKS:
        user = record.action in USER_STACKS
        return lambda data, base: symbols.frames(record, data, base + offset, user=user)
    if record.action in SYMBOLIC:
        return lambda data, base: show_symbol(record, data, base + offset, symbols)
    if size in COLUMNS:
        read = COLUMNS[size].read
        return lambda data, base: read(data, base + offset)
    return lambda data, base: _text_or_bytes(data[base + offset : base + offset + size])


def _text_or_bytes(data: bytes) -> str | bytes:
    text = c_string(data)
    return data if any(data[len(text) :]) else decode(text)
