"""The recording of a dtrace run, for --export.

A record says nothing of the thread that made it, so each clause that records is given three hidden
actions: pid, tid and execname.  They are not shown.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from trapline.consumer.elements import aggregations
from trapline.consumer.records.statements import HIDDEN_STATEMENT
from trapline.consumer.request import Source, Specifier
from trapline.consumer.text.symbols import Frame
from trapline.export.events import Count, Event, ExportError, Phase, Recording, Stack, Value
from trapline.export.formats import export, format_of
from trapline.framework.base.program import ActionDescription, ActionKind, EcbDescription, Program
from trapline.support.output_files import OutputError, prepare

if TYPE_CHECKING:
    from trapline.consumer.program.compile import Compiler
    from trapline.consumer.records.statements import Firing
    from trapline.consumer.session import Session

# The program whose actions are added: a BEGIN clause of its own is never enabled.
_IDENTITY: Final = "dtrace:::BEGIN { trace(pid); trace(tid); trace(execname); }"

_PHASES: Final = {"entry": Phase.ENTRY, "return": Phase.RETURN}
# After these nothing may be recorded in a clause.
_LAST: Final = frozenset({ActionKind.COMMIT, ActionKind.DISCARD})
# DTRACEACT_AGGREGATION: the class of the actions that aggregate.
_AGGREGATING: Final = 0x0700
_CLASS: Final = 0xFF00


def _with_identity(program: Program, identity: Program) -> Program:
    """Return a program whose recording clauses also record what the program `identity` does."""
    hidden = tuple(
        replace(action, statement=HIDDEN_STATEMENT + number) for number, action in enumerate(identity.ecbs[0].actions)
    )
    return replace(program, ecbs=tuple(_identified(ecb, hidden) for ecb in program.ecbs))


def _identified(ecb: EcbDescription, hidden: tuple[ActionDescription, ...]) -> EcbDescription:
    statements = [list(group) for _, group in groupby(ecb.actions, key=lambda action: action.statement)]
    records = not statements or any(_records(statement) for statement in statements)
    if not records or any(action.kind in _LAST for action in ecb.actions):
        return ecb
    return replace(ecb, actions=(*ecb.actions, *hidden))


def _records(statement: list[ActionDescription]) -> bool:
    """Return whether a statement records something that is not part of an aggregation."""
    if any(action.kind & _CLASS == _AGGREGATING for action in statement):
        return False
    return not all(
        action.kind is ActionKind.DIFEXPR and action.difo is not None and not action.difo.returns.size
        for action in statement
    )


class Exporter:
    """Gathers a trace, and writes it at the end."""

    def __init__(self, path: str, form: str | None, title: str, isa: str) -> None:
        """Raise `trapline.export.events.ExportError` if no format is meant."""
        self._path = path
        self._format = format_of(path, form)
        if self._format != "ctf":  # which is a folder
            try:
                prepare(path)
            except OutputError as error:
                raise ExportError(str(error)) from None
        self._title = title
        self._recording = Recording(isa)

    def prepare(self, program: Program, compiler: Compiler) -> Program:
        """Return a program whose recording clauses record the thread, too."""
        identity = compiler.compile_text(_IDENTITY, Source(Specifier.NAME, _IDENTITY), ())
        return _with_identity(program, identity)

    def add(self, firing: Firing) -> None:
        """Add a record."""
        description = firing.probe.description
        pid, tid, process = firing.identity or (0, 0, "")
        self._recording.events.append(
            Event(
                firing.timestamp,
                firing.cpu,
                pid,
                tid,
                process,
                _PHASES.get(description.name, Phase.INSTANT) if description.function else Phase.INSTANT,
                description.provider,
                description.module,
                description.function,
                description.name,
                _named(firing.values),
            )
        )

    def write(self, session: Session, end: int) -> list[str]:
        """Write the file; return what is left out.  Raises `trapline.export.events.ExportError`."""
        found = aggregations(session)
        self._recording.counts = [
            Count(one.name, found.functions[one.name], tuple(map(_value, one.keys)), one.value) for one in found
        ]
        self._recording.events.sort(key=lambda event: event.time)
        self._recording.end = end
        return export(self._recording, self._path, self._format, self._title)


def _value(value: Any) -> Value:
    if isinstance(value, tuple):
        return Stack(one.name if isinstance(one, Frame) else str(one) for one in value)
    return value if isinstance(value, int | str | bytes) else str(value)


def _named(values: tuple[Any, ...]) -> dict[str, Value]:
    """Name values by their positions; the first stack is called so."""
    found: dict[str, Value] = {}
    for number, value in enumerate(map(_value, values), 1):
        name = "stack" if isinstance(value, Stack) and "stack" not in found else f"value{number}"
        found[name] = value
    return found
