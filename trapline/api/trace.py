"""`trapline.trace`: a D program over a guest, and its records and aggregations as data."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any, Final

from trapline.api import TraplineError
from trapline.consumer.elements import Aggregations, Element
from trapline.lab.html_table import Cell, html_table
from trapline.lab.html_table import code as cell

# Messages that are no reason to give up: what was matched, who has ended, errors and drops of single firings.
_NOTES: Final = re.compile(
    r"dtrace: (?:description|script|program|error on enabled probe|pid \d+|allowing|\d+ )|.*\bdrops? on CPU"
)
_MOST_ROWS: Final = 200


@dataclass(frozen=True, slots=True)
class Recorded:
    """The record of one firing of a probe."""

    probe: str
    """provider:module:function:name."""
    timestamp: int
    """Virtual nanoseconds since the guest's start."""
    cpu: int
    values: tuple[Any, ...]
    """A value for each action: a number, a string; the text of a printf(); for stack() a list of
    {"pc", "name"}; bytes as {"bytes": hexadecimal}."""


@dataclass(frozen=True, slots=True)
class Trace:
    """The result of a D program."""

    isa: str
    records: tuple[Recorded, ...]
    aggregations: Aggregations
    """The elements of all aggregations, as they were at the end: each with `name`, `keys`, and
    `value`, which is a number, or for a distribution a dict from the lowest value of a bucket to
    its count."""
    output: str
    """The output of the guest."""
    messages: tuple[str, ...]
    """The messages of dtrace: the number of probes matched, errors in clauses, drops."""
    status: int
    """The argument of exit(), or 0."""

    def aggregation(self, name: str = "_") -> dict[Any, Any]:
        """Return one aggregation by its keys: a tuple if it has several, () if it has none.

        `name` is with or without the @; the aggregation without a name is "_".
        Raises `TraplineError` if there is no such aggregation.
        """
        wanted = name.removeprefix("@") or "_"
        found = [one for one in self.aggregations if one.name == wanted]
        if not found:
            names = ", ".join(f"@{one}" for one in dict.fromkeys(one.name for one in self.aggregations)) or "none"
            raise TraplineError(f"no aggregation '@{wanted}' has data; those that have: {names}")
        return {one.keys[0] if len(one.keys) == 1 else one.keys: one.value for one in found}

    def _repr_html_(self) -> str:
        parts = []
        if self.records:
            rows = [
                (cell(str(one.timestamp)), cell(one.probe), Cell(tuple(map(_told, one.values))))
                for one in self.records[:_MOST_ROWS]
            ]
            more = len(self.records) - _MOST_ROWS
            parts.append(html_table(("ns", "probe", "values"), rows, f"and {more:,} more" if more > 0 else ""))
        parts.append(self.aggregations._repr_html_())
        if self.output:
            parts.append(html_table(("output of the guest",), [(Cell(tuple(self.output.splitlines()), code=True),)]))
        return "".join(parts) or html_table(("messages",), [(Cell(self.messages),)])


def _told(value: Any) -> str:
    if isinstance(value, list):
        return " < ".join(_told(one) for one in value)
    return str(value.get("name") or value.get("bytes")) if isinstance(value, dict) else str(value)


def trace(
    program: str | Path,
    *,
    isa: str | None = None,
    command: str | None = None,
    root: str | Path | None = None,
    guest: str | None = None,
    trap: str = "host",
    fidelity: str = "exact",
    options: Mapping[str, object] | None = None,
    arguments: Sequence[str] = (),
    destructive: bool = False,
) -> Trace:
    """Run a D program over a guest to its end, and return what it recorded.

        >>> clause = "fbt::sys_getpid:entry { @[execname] = count(); }"
        >>> trapline.trace(clause, command="getpid 3", isa="riscv64").aggregation()
        {'getpid': 3}

    `program` is D, or the `Path` of a script.  `command` is what the guest runs: a command of the
    kernel guest's shell, a Linux program of this host, or testbins:NAME; None is the kernel guest's
    start-up script.  `isa` is x86_64, aarch64, riscv64 or i386; None: that of the program, else
    x86_64.  `root` is the directory that a Linux program sees as /.  `guest` is kernel, linux or
    linux-kernel; None: as `command` demands.  `trap` is host or guest: who handles breakpoints.
    `fidelity` is exact, freebsd or linux: whose quirks are reproduced.  `options` are those of -x,
    such as {"bufsize": "1m"}; True for one without a value.  `arguments` are $1, $2 ...

    Raises `TraplineError` with dtrace's own message, for example for an error in the program.
    """
    given = {"--isa": isa, "--guest": guest, "--root": root, "--trap": trap, "-c": command}
    words = ["-x", "format=json"]
    for name, value in {"fidelity": fidelity, **(options or {})}.items():
        words += ["-x", name if value is True else f"{name}={value}"]
    words += [word for flag, value in given.items() if value is not None for word in (flag, str(value))]
    words += ["-w"] if destructive else []
    words += ["-s", str(program)] if isinstance(program, Path) else ["-n", program]
    return _run([*words, *arguments], isa or "")


def _run(words: list[str], isa: str) -> Trace:
    from trapline.commands.dtrace import open_machine  # noqa: PLC0415  the guests are large imports
    from trapline.consumer.command import main  # noqa: PLC0415
    from trapline.consumer.environment import CommandEnvironment  # noqa: PLC0415

    lines, messages = io.StringIO(), io.StringIO()
    machines = []

    def opened(wanted: Any) -> Any:
        machines.append(open_machine(wanted))
        return machines[-1]

    printed = io.BytesIO()
    output = io.TextIOWrapper(printed, "utf-8", "replace", write_through=True)
    with redirect_stdout(output), redirect_stderr(output):
        status = main(words, CommandEnvironment(opened, lines, messages))
    told = tuple(messages.getvalue().splitlines())
    said = takewhile(lambda line: not line.startswith("Usage: "), told)
    refusals = [line.removeprefix("dtrace: ") for line in said if not _NOTES.match(line)]
    if status and refusals:
        raise TraplineError("\n".join(refusals))
    found = [json.loads(line) for line in lines.getvalue().splitlines()]
    elements = [one for one in found if one["type"] == "aggregation"]
    return Trace(
        machines[0].guest.isa.name if machines else isa,
        tuple(_record(one) for one in found if one["type"] == "record"),
        Aggregations(map(_element, elements), {_name(one): one["function"] for one in elements}),
        printed.getvalue().decode("utf-8", "replace"),
        told,
        status,
    )


def _record(one: dict[str, Any]) -> Recorded:
    probe = ":".join(one[part] for part in ("provider", "module", "function", "name"))
    return Recorded(probe, one["timestamp"], one["cpu"], tuple(one["values"]))


def _name(one: dict[str, Any]) -> str:
    name: str = one["name"]
    return name.removeprefix("@")


def _element(one: dict[str, Any]) -> Element:
    value = dict(one["value"]) if isinstance(one["value"], list) else one["value"]
    return Element(_name(one), tuple(map(_key, one["keys"])), value)


def _key(key: Any) -> Any:
    """Return a part of a key: a stack as a tuple of names, since keys must be hashable."""
    return tuple(map(_told, key)) if isinstance(key, list) else _told(key) if isinstance(key, dict) else key
