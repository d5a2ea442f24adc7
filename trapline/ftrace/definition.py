"""Definitions of events, one per line, in the syntax of uprobe_events.

    p[:[GROUP/][EVENT]] PATH:OFFSET[(REFCTR)] [ARGUMENT ...]        a probe
    r[:[GROUP/][EVENT]] PATH:OFFSET[(REFCTR)] [ARGUMENT ...]        a return probe; also
                                                                    p... PATH:OFFSET%return
    -:[GROUP/]EVENT                                                 removes an event

Source: Linux 6.12 kernel/trace/trace_uprobe.c (__trace_uprobe_create), trace_probe.c
(traceprobe_parse_event_name).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from emu.isa.base import Isa
from trapline.ftrace import fetch_parser
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.expressions import FetchArgument

GROUP: Final = "uprobes"
LONGEST_NAME: Final = 63
_ARGUMENTS_MAX: Final = 128
_RECORD_MAX: Final = 3072
_EVENT: Final = re.compile(r"[A-Za-z_]\w*")
_GROUP: Final = re.compile(r"[A-Za-z_][\w-]*")


@dataclass(frozen=True, slots=True)
class Definition:
    """An event at one address."""

    returns: bool
    group: str
    event: str
    path: str
    offset: int
    counter: int = 0
    """File offset of the reference counter, 0 for none."""
    arguments: tuple[FetchArgument, ...] = ()

    def __str__(self) -> str:
        """Return the line of the event in uprobe_events."""
        counter = f"({self.counter:#x})" if self.counter else ""
        arguments = "".join(f" {argument.name}={argument.text}" for argument in self.arguments)
        kind = "r" if self.returns else "p"
        return f"{kind}:{self.group}/{self.event} {self.path}:{self.offset:#018x}{counter}{arguments}"


def parse(line: str, isa: Isa) -> Definition:
    """Read a line that adds an event.  Raises `UprobeEventError`."""
    line = line.split("#", 1)[0]
    words = list(fetch_parser.words(line))
    if len(words) < 2 or words[0][0][0] not in {"p", "r"}:
        raise UprobeEventError("BAD_DEFINITION", line, 0)
    head, (target, at) = words[0][0], words[1]
    path, offset, counter, suffix = _target(line, target, at)
    returns = head[0] == "r" or suffix
    group, event = _names(line, head)
    used: set[str] = set()
    arguments = []
    for index, (word, column) in enumerate(words[2 : 2 + _ARGUMENTS_MAX], 1):
        argument = fetch_parser.parse(word, isa, index, used, returns=returns, command=line, column=column)
        used.add(argument.name)
        arguments.append(argument)
    if sum(argument.size for argument in arguments) > _RECORD_MAX:
        raise UprobeEventError("EVENT_TOO_BIG", line, words[2][1])
    return Definition(returns, group, event or _default_event(path, offset), path, offset, counter, tuple(arguments))


def _default_event(path: str, offset: int) -> str:
    base = re.split(r"[.\-_]", path.rsplit("/", 1)[-1])[0]
    return f"p_{base}_{offset:#x}"


def _names(line: str, head: str) -> tuple[str, str]:
    """Read group and event; either may be missing."""
    if head[1:2] != ":":
        return GROUP, ""
    text = head[2:]
    found = re.fullmatch(r"([^/.]*)[/.](.*)", text)
    group, event = (found[1], found[2]) if found else (GROUP, text)
    event_at = len(head) - len(event)
    if found and not group:
        raise UprobeEventError("NO_GROUP_NAME", line, 2)
    if len(group) > LONGEST_NAME:
        raise UprobeEventError("GROUP_TOO_LONG", line, 2)
    if not _GROUP.fullmatch(group):
        raise UprobeEventError("BAD_GROUP_NAME", line, 2)
    if not event:
        if not found:
            raise UprobeEventError("NO_EVENT_NAME", line, event_at)
        return group, ""
    if len(event) > LONGEST_NAME:
        raise UprobeEventError("EVENT_TOO_LONG", line, event_at)
    if not _EVENT.fullmatch(event):
        raise UprobeEventError("BAD_EVENT_NAME", line, event_at)
    return group, event


def _target(line: str, text: str, at: int) -> tuple[str, int, int, bool]:
    """Read PATH:OFFSET, %return, (REFCTR): path, offset, counter, whether it is a return probe."""
    path, colon, rest = text.rpartition(":")
    if not colon or "/" not in path or rest[:1] not in fetch_parser.DIGITS:
        raise UprobeEventError("BAD_UPROBE_OFFS", line, at + len(path) + len(colon))
    rest_at = at + len(path) + 1
    counter = 0
    if "(" in rest:
        rest, _, counted = rest.partition("(")
        counted_at = rest_at + len(rest)
        if ")" not in counted:
            raise UprobeEventError("REFCNT_OPEN_BRACE", line, counted_at)
        digits, _, after = counted.partition(")")
        if after:
            raise UprobeEventError("BAD_REFCNT_SUFFIX", line, counted_at + len(digits) + 2)
        found = fetch_parser.number(digits)
        if found is None:
            raise UprobeEventError("BAD_REFCNT", line, counted_at + 1)
        counter = found
    digits, percent, suffix = rest.partition("%")
    if percent and suffix != "return":
        raise UprobeEventError("BAD_ADDR_SUFFIX", line, rest_at + len(digits))
    offset = fetch_parser.number(digits)
    if offset is None:
        raise UprobeEventError("BAD_UPROBE_OFFS", line, rest_at)
    return path, offset, counter, bool(percent)
