"""An event's `format` file: its fields, their offsets in a record, and its printf format.

Source: Linux 6.12 kernel/trace/trace_events.c (f_show), trace_probe.c
(traceprobe_define_arg_fields, __set_print_fmt), trace_probe.h (DEFINE_FIELD).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from trapline.ftrace.definition import Definition
from trapline.ftrace.expressions import FetchArgument


class Field(NamedTuple):
    """One field of a record; `offset` and `size` in bytes."""

    kind: str
    name: str
    offset: int
    size: int
    signed: bool

    def __str__(self) -> str:
        """Return the field's line."""
        return (
            f"\tfield:{self.kind} {self.name};\toffset:{self.offset};\tsize:{self.size};\tsigned:{int(self.signed)};\n"
        )


_COMMON: Final = (
    Field("unsigned short", "common_type", 0, 2, signed=False),
    Field("unsigned char", "common_flags", 2, 1, signed=False),
    Field("unsigned char", "common_preempt_count", 3, 1, signed=False),
    Field("int", "common_pid", 4, 4, signed=True),
)
_ENTRY: Final = ("__probe_ip",)
_RETURN: Final = ("__probe_func", "__probe_ret_ip")
_CONVERSIONS: Final = {"u": "%u", "s": "%d", "x": "0x%x"}
_LONG: Final = {"u": "%Lu", "s": "%Ld", "x": "0x%Lx"}


def event_format(definition: Definition, number: int) -> str:
    """Return the text of events/GROUP/EVENT/format; `number` is the event's ID."""
    common = "".join(map(str, _COMMON))
    own = "".join(map(str, _fields(definition)))
    return f"name: {definition.event}\nID: {number}\nformat:\n{common}\n{own}\nprint fmt: {_printed(definition)}\n"


def _fields(definition: Definition) -> Iterator[Field]:
    offset = 8
    for name in _RETURN if definition.returns else _ENTRY:
        yield Field("unsigned long", name, offset, 8, signed=False)
        offset += 8
    for argument in definition.arguments:
        kind = argument.type
        text = kind.name == "string"
        length = str(kind.count or "") if text else ""
        name = f"{argument.name}[{kind.count}]" if kind.count and not text else argument.name
        kind_name = f"__data_loc char[{length}]" if text else kind.name
        yield Field(kind_name, name, offset, argument.size, _signed(argument))
        offset += argument.size


def _signed(argument: FetchArgument) -> bool:
    return argument.type.name in {"string", "char"} or argument.type.name.startswith("s")


def _printed(definition: Definition) -> str:
    """Return the printf format of a record and its arguments."""
    standard = _RETURN if definition.returns else _ENTRY
    formats = ["(%lx <- %lx)" if definition.returns else "(%lx)"]
    values = [f"REC->{name}" for name in standard]
    for argument in definition.arguments:
        count = argument.type.count
        one = _conversion(argument)
        formats.append(f"{argument.name}={{{','.join([one] * count)}}}" if count else f"{argument.name}={one}")
        names = [f"{argument.name}[{index}]" for index in range(count)] if count else [argument.name]
        form = "__get_str({})" if argument.type.name == "string" else "REC->{}"
        values += map(form.format, names)
    return f'"{" ".join(formats)}", {", ".join(values)}'


def _conversion(argument: FetchArgument) -> str:
    kind = argument.type
    if kind.name == "string":
        return '\\"%s\\"'
    if kind.name == "char":
        return "'%c'"
    return (_LONG if kind.size == 8 else _CONVERSIONS)[kind.name[0]]
