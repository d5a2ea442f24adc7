"""Plans for the records of enablings: one for each EPID, made at its first record.

A statement of the program is one step: it shows text, gives a Python value, or acts on the consumer
(exit, clear, setopt ...).  Source: FreeBSD libdtrace dt_consume.c (dt_consume_cpu).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Final

from trapline.consumer.records.faults import ERROR_STATEMENT
from trapline.consumer.records.printf import PRINTF_LIKE, USER_STACKS, bind_format
from trapline.consumer.records.report import SYMBOLIC, show_symbol
from trapline.consumer.records.statements import HIDDEN_STATEMENT, Firing, RecordPlan, Records, Step
from trapline.consumer.records.values import value_reader
from trapline.consumer.text.columns import pad
from trapline.consumer.text.default_format import COLUMNS, TRACE_WIDTH, UNSIGNED, dump, show_bytes
from trapline.consumer.text.symbols import DEFAULT_INDENT, show_frames
from trapline.framework.base.program import ActionKind, LibraryAction
from trapline.framework.device.printf import parse_format

if TYPE_CHECKING:
    from trapline.consumer.records.actions import Actions
    from trapline.consumer.records.printf import Render
    from trapline.consumer.records.report import Report
    from trapline.consumer.text.symbols import Symbols
    from trapline.framework.base.device import EnabledProbe, ProbeInfo, RecordDescription
    from trapline.options import Options

_SYMBOL_WIDTH: Final = -50


class Planner:
    """Makes plans; they are valid for the current options."""

    def __init__(
        self,
        symbols: Symbols,
        options: Options,
        report: Report,
        actions: Actions,
        format_of: Callable[[int], str],
        show_type: Callable[[str, bytes], str | None],
    ) -> None:
        self._symbols = symbols
        self._options = options
        self._report = report
        self._format_of = format_of
        self._show_type = show_type
        self._actions = actions
        self._library: dict[int, Callable[[Firing, Records], None]] = {
            LibraryAction.CLEAR: actions.clear,
            LibraryAction.TRUNC: actions.truncate_aggregation,
            LibraryAction.NORMALIZE: actions.normalize,
            LibraryAction.DENORMALIZE: actions.denormalize,
            LibraryAction.SETOPT: actions.set_option,
            LibraryAction.FTRUNCATE: actions.truncate_output,
        }

    def plan(self, enabled: EnabledProbe, probe: ProbeInfo) -> RecordPlan:
        """Return the plan for the records of an EPID."""
        description = probe.description
        lead = f"{probe.id:6d} {pad(f'{description.function}:{description.name}', 32)} "
        records = enabled.records
        is_error = bool(records) and records[0].statement == ERROR_STATEMENT
        shown = [record for record in records if record.statement < HIDDEN_STATEMENT]
        hidden = () if is_error else [record for record in records if record.statement >= HIDDEN_STATEMENT]
        steps = () if is_error else tuple(self._steps(shown))
        identity = tuple(value_reader(record, self._symbols) for record in hidden)
        texts = tuple(step.text for step in steps if step.text is not None)
        whole = texts if len(texts) == len(steps) else None
        return RecordPlan(enabled.epid, probe, enabled.size, lead, steps, whole, is_error, identity)

    def _steps(self, records: Records) -> Iterator[Step]:
        """Make the steps of the statements; a statement that records nothing has none."""
        for _, group in groupby((record for record in records if record.size), key=lambda record: record.statement):
            statement = list(group)
            while statement:
                step, used = self._step(statement)
                if step is not None:
                    yield replace(step, records=tuple(statement[:used]))
                statement = statement[used:]

    def _step(self, records: Records) -> tuple[Step | None, int]:
        """Make the step that begins with the first of these records.

        Return it and how many records it takes.
        """
        first = records[0]
        action = first.action
        if action in PRINTF_LIKE and first.format:
            return self._formatted(action, records), len(records)
        if action is ActionKind.PRINTA:
            variables = list(records)
            return Step(text=lambda data, base: self._report.default(_variables(variables, data, base))), len(records)
        if action is ActionKind.FREOPEN:
            return Step(effect=lambda firing: self._actions.reopen(firing, "")), len(records)
        if action is ActionKind.LIBACT:
            act = self._library.get(first.argument)
            statement = list(records)
            return (Step(effect=lambda firing: act(firing, statement)) if act else None), len(records)
        if action is ActionKind.EXIT:
            return Step(effect=lambda firing: self._actions.exit(firing, records)), 1
        if action is ActionKind.TRACEMEM_DYNSIZE and first.size == 8 and len(records) > 1:
            return self._memory(records[1], first), 2
        return self._datum(first), 1

    def _formatted(self, action: ActionKind, records: Records) -> Step:
        """Make the step of printf(), printa(), system() or freopen() with a format."""
        pieces = parse_format(self._format_of(records[0].format))
        if action is ActionKind.PRINTA:
            return Step(text=lambda data, base: self._report.formatted(pieces, _variables(records, data, base)))
        text = bind_format(pieces, records, self._symbols)
        if action is ActionKind.PRINTF:
            return Step(text=text, value=text)
        act = self._actions.system if action is ActionKind.SYSTEM else self._actions.reopen
        return Step(effect=lambda firing: act(firing, text(firing.data, firing.offset)))

    def _datum(self, record: RecordDescription) -> Step:
        """Make the step of a single datum."""
        action, offset = record.action, record.offset
        if action is ActionKind.TRACEMEM:
            return self._memory(record, None)
        if action is ActionKind.PRINTM:

            def memory(data: bytes, base: int) -> bytes:
                start = base + offset + 8
                return data[start : start + UNSIGNED[8](data, start - 8)]

            return Step(lambda data, base: dump(memory(data, base)), value=memory)
        text = self._plain(record)
        if action is ActionKind.DIFEXPR and record.format:
            text = self._typed(record, text)
        return Step(text, value=value_reader(record, self._symbols))

    def _plain(self, record: RecordDescription) -> Render:
        """Show a datum by its action and its size."""
        action, offset, size = record.action, record.offset, record.size
        if action is ActionKind.STACK or action in USER_STACKS:
            user, indent = action in USER_STACKS, self._options.number("stackindent", DEFAULT_INDENT)
            frames = self._symbols.frames
            return lambda data, base: show_frames(frames(record, data, base + offset, user=user), indent)
        if action in SYMBOLIC:
            symbols = self._symbols
            return lambda data, base: "  " + pad(show_symbol(record, data, base + offset, symbols), _SYMBOL_WIDTH)
        quiet, raw = self._options.is_set("quiet"), self._options.is_set("rawbytes")
        if size in COLUMNS:
            show = COLUMNS[size].quiet if quiet else COLUMNS[size].text
            return lambda data, base: show(data, base + offset)

        def show_text(data: bytes, base: int) -> str:
            start = base + offset
            return show_bytes(data[start : start + size], TRACE_WIDTH, quiet=quiet, raw=raw)

        return show_text

    def _typed(self, record: RecordDescription, plain: Render) -> Render:
        """Show the datum of print() by its type, whose name is the record's format."""
        name = self._format_of(record.format)

        def text(data: bytes, base: int) -> str:
            start = base + record.offset
            shown = self._show_type(name, data[start : start + record.size])
            return plain(data, base) if shown is None else shown

        return text

    def _memory(self, record: RecordDescription, shown: RecordDescription | None) -> Step:
        """Make the step of tracemem(); `shown` is the record of its third argument."""

        def value(data: bytes, base: int) -> bytes:
            size = UNSIGNED[8](data, base + shown.offset) if shown else 0
            start = base + record.offset
            return data[start : start + (size if 0 < size < record.size else record.size)]

        return Step(lambda data, base: dump(value(data, base)), value=value)


def _variables(records: Records, data: bytes, base: int) -> list[int]:
    """Read the aggregation variables of a printa()."""
    return [UNSIGNED[record.size](data, base + record.offset) for record in records]
