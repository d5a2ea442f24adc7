"""-x oformat: the trace as one document of JSON, XML or HTML, written while the guest runs.

Source: the manual page dtrace(1) of FreeBSD 15, STRUCTURED OUTPUT: an object "dtrace" with a list
"probes".  White space may differ from libxo's.  A time is that of the output, not of the firing, as
there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import escape
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

from trapline.consumer.records.faults import DropKind
from trapline.consumer.structured import Object, Structure

if TYPE_CHECKING:
    from trapline.consumer.output import Output
    from trapline.consumer.records.faults import Drop
    from trapline.consumer.records.statements import Firing
    from trapline.consumer.session import Session

# What XML 1.0 does not allow, not even as a reference.
_NO_XML: Final = re.compile("[^\\t\\n\\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_STEP: Final = "  "


def _text(value: Any) -> str:
    shown = _NO_XML.sub(lambda found: found[0].encode("unicode_escape").decode(), str(value))
    return escape(shown, quote=False)


class _Json:
    """One object after the other in the list "probes"."""

    def __init__(self, *, pretty: bool) -> None:
        self._pretty = pretty
        self._separator = ""

    def head(self) -> str:
        return '{\n  "dtrace": {\n    "probes": [\n' if self._pretty else '{"dtrace": {"probes": ['

    def probe(self, one: Object) -> str:
        separator, self._separator = self._separator, ",\n" if self._pretty else ", "
        if not self._pretty:
            return separator + json.dumps(one, ensure_ascii=False, separators=(",", ":"))
        return separator + indent(json.dumps(one, ensure_ascii=False, indent=2), _STEP * 3)

    def tail(self) -> str:
        return f"\n{_STEP * 2}]\n{_STEP}}}\n}}\n" if self._pretty else "]}}\n"


class _Xml:
    """Each object of a list is an element with the list's name."""

    def __init__(self, *, pretty: bool) -> None:
        self._pretty = pretty

    def head(self) -> str:
        return '<?xml version="1.0"?>\n<dtrace>' + ("\n" if self._pretty else "")

    def probe(self, one: Object) -> str:
        return "".join(self._element("probes", one, 1))

    def tail(self) -> str:
        return "</dtrace>\n"

    def _element(self, name: str, value: Any, depth: int) -> Iterator[str]:
        lead, end = (_STEP * depth, "\n") if self._pretty else ("", "")
        if isinstance(value, list):
            for one in value:
                yield from self._element(name, one, depth)
        elif isinstance(value, dict):
            yield f"{lead}<{name}>{end}"
            for field, part in value.items():
                yield from self._element(field, part, depth + 1)
            yield f"{lead}</{name}>{end}"
        else:
            yield f"{lead}<{name}>{_text(value)}</{name}>{end}" if value != "" else f"{lead}<{name}/>{end}"


class _Html:
    """A line for each record: its fields, one after the other; there is no list "output"."""

    def __init__(self, *, pretty: bool) -> None:
        self._end = "\n" if pretty else ""

    def head(self) -> str:
        return ""

    def probe(self, one: Object) -> str:
        fields = [
            f'<div class="data" data-tag="{name}">{_text(value)}</div>{self._end}' for name, value in _leaves(one)
        ]
        gap = f'<div class="text"></div>{self._end}'
        return f'<div class="line">{self._end}{gap.join(fields)}</div>\n'

    def tail(self) -> str:
        return ""


def _leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        for one in value:
            yield from _leaves(one, name)
    elif isinstance(value, dict):
        for field, part in value.items():
            yield from _leaves(part, field)
    else:
        yield name, value


_STYLES: Final[dict[str, Callable[..., _Json | _Xml | _Html]]] = {"json": _Json, "xml": _Xml, "html": _Html}


class Document:
    """The document of one trace; `wanted` is the value of option oformat."""

    def __init__(
        self, session: Session, output: Output, wanted: str, typed: Callable[[str, bytes], list[Object] | None]
    ) -> None:
        style, *words = wanted.split(",")
        self._style = _STYLES[style](pretty="pretty" in words)
        self._structure = Structure(session, typed)
        self._session = session
        self._output = output
        self._dropped: dict[DropKind, int] = {}

    def begin(self) -> None:
        """Write what stands before the first probe."""
        self._output.write(self._style.head())

    def firing(self, firing: Firing) -> None:
        """Write a record, and do what its statements say, in their order."""
        probe, found = firing.probe, []
        for step in firing.plan.steps:
            if step.effect is not None:
                step.effect(firing)
            else:
                found += self._structure.statement(step, firing)
        description = probe.description
        self._write(
            timestamp=self._session.guest.now(),
            cpu=firing.cpu,
            id=probe.id,
            provider=description.provider,
            module=description.module,
            function=description.function,
            name=description.name,
            output=found,
        )

    def drop(self, drop: Drop, message: str) -> None:
        """Write a drop, as a probe that does not exist."""
        total = self._dropped[drop.kind] = self._dropped.get(drop.kind, 0) + drop.count
        self._write(
            cpu=-1,
            id=-1,
            provider="dtrace",
            module="INTERNAL",
            function="INTERNAL",
            name="DROP",
            timestamp=self._session.guest.now(),
            count=drop.count,
            total=total,
            kind=list(DropKind).index(drop.kind),
            msg=f"{message}\n",
        )

    def end(self, *, aggregations: bool) -> None:
        """Write the aggregations that were not printed, with -O, and the end."""
        for one in self._structure.unprinted() if aggregations else ():
            self._write(**one)
        self._output.write(self._style.tail())

    def _write(self, **fields: Any) -> None:
        self._output.write(self._style.probe(fields))
