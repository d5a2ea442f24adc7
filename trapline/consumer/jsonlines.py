"""-x format=json: every record, aggregation and probe as a line of JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from trapline.consumer.text.symbols import Frame

if TYPE_CHECKING:
    from trapline.consumer.elements import Element
    from trapline.consumer.records.statements import Firing
    from trapline.framework.base.device import ProbeInfo
    from trapline.framework.base.program import ProbeDescription
    from trapline.options import Options


def wanted(options: Options) -> bool:
    """Return whether -x format=json is set."""
    return options.text("format") == "json"


def _plain(value: Any) -> Any:
    """Return a value for JSON: bytes in hexadecimal, a frame by its address and name."""
    match value:
        case bytes():
            return {"bytes": value.hex()}
        case Frame():
            return {"pc": value.pc, "name": value.name}
        case tuple() | list():
            return [_plain(one) for one in value]
        case dict():
            return [[_plain(low), count] for low, count in value.items()]
    return value


def _line(**fields: Any) -> str:
    return json.dumps(fields, ensure_ascii=False) + "\n"


def _probe(description: ProbeDescription) -> dict[str, str]:
    return {name: getattr(description, name) for name in ("provider", "module", "function", "name")}


def firing_line(firing: Firing) -> str:
    """Return the line of a record: the value of each statement, for a printf() its text."""
    return _line(
        type="record",
        timestamp=firing.timestamp,
        cpu=firing.cpu,
        epid=firing.plan.epid,
        id=firing.probe.id,
        **_probe(firing.probe.description),
        values=_plain(firing.values),
    )


def element_line(element: Element, function: str) -> str:
    """Return the line of an element of an aggregation.

    A distribution is a list of [lowest value, count].
    """
    return _line(
        type="aggregation", name=f"@{element.name}", function=function, keys=_plain(element.keys),
        value=_plain(element.value),
    )  # fmt: skip


def probe_line(probe: ProbeInfo, arguments: list[str] | None = None) -> str:
    """Return the line of a probe; with `arguments` also the types of args[]."""
    extra = {} if arguments is None else {"args": arguments}
    return _line(type="probe", id=probe.id, **_probe(probe.description), **extra)
