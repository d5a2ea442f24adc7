"""Actions that happen when their record is consumed: exit, clear, trunc, setopt, system ...

Source: FreeBSD libdtrace dt_consume.c and dt_printf.c (dtrace_system, dtrace_freopen).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from trapline.consumer.aggregations.order import BY_VALUE
from trapline.consumer.records.faults import LIBRARY, Fault
from trapline.consumer.text.default_format import SIGNED, UNSIGNED
from trapline.options import OptionError, Options

if TYPE_CHECKING:
    from trapline.consumer.aggregations.aggregate import Aggregate
    from trapline.consumer.output import Output
    from trapline.consumer.records.statements import Firing
    from trapline.framework.base.device import RecordDescription

# The format the compiler gives freopen(""): restore the output.
RESTORE: Final = " "


class Actions:
    """The actions of the consumer for a program; `records` are those of the statement."""

    def __init__(
        self,
        aggregate: Aggregate,
        options: Options,
        output: Output,
        system: Callable[[str], None],
        on_fault: Callable[[Fault], None],
        on_option: Callable[[str], None],
    ) -> None:
        self._aggregate = aggregate
        self._options = options
        self._output = output
        self._system = system
        self._on_fault = on_fault
        self._on_option = on_option
        self.status: int | None = None
        """Argument of the last exit() that was consumed; None: there was none."""

    def exit(self, firing: Firing, records: Sequence[RecordDescription]) -> None:
        """Store the exit status of the program."""
        self.status = firing.integer(records[0])

    def clear(self, firing: Firing, records: Sequence[RecordDescription]) -> None:
        """Zero the values of an aggregation, keep its keys."""
        self._aggregate.clear(_variable(firing, records))

    def truncate_aggregation(self, firing: Firing, records: Sequence[RecordDescription]) -> None:
        """Keep the n highest values, for a negative n the lowest; without n none."""
        variable = _variable(firing, records)
        number = firing.integer(records[1]) if len(records) > 1 else 0
        entries = BY_VALUE.sorted(self._aggregate.variable(variable))
        kept = entries[:-number] if number < 0 else entries[len(entries) - min(number, len(entries)) :]
        self._aggregate.keep(variable, kept)

    def normalize(self, firing: Firing, records: Sequence[RecordDescription]) -> None:
        """Divide the shown values of an aggregation."""
        divisor = records[1]
        normal = UNSIGNED[divisor.size](firing.data, firing.offset + divisor.offset)
        self._aggregate.normalize(_variable(firing, records), normal)

    def denormalize(self, firing: Firing, records: Sequence[RecordDescription]) -> None:
        """Show the values of an aggregation as they are again."""
        self._aggregate.normalize(_variable(firing, records), 1)

    def set_option(self, firing: Firing, records: Sequence[RecordDescription]) -> None:
        """Set an option; a value that is not a string, or none at all, is "1"."""
        name = firing.text(records[0])
        value = firing.text(records[1]) if len(records) > 1 and records[1].size not in SIGNED else "1"
        try:
            self._options.set(name, value, active=True)
        except OptionError as error:
            self.fault(firing, f'couldn\'t set option "{name}" to "{value}": {error}')
        else:
            self._on_option(name)

    def truncate_output(self, _firing: Firing, _records: Sequence[RecordDescription]) -> None:
        """Empty the output."""
        self._output.truncate()

    def reopen(self, firing: Firing, path: str) -> None:
        """Write to `path` from now on, for the empty path to the original output."""
        if path in {"", RESTORE}:
            self._output.restore()
            return
        try:
            self._output.redirect(path)
        except OSError as error:
            self.fault(firing, f'couldn\'t freopen() "{path}": {error.strerror}')

    def system(self, _firing: Firing, command: str) -> None:
        """Run a command, after earlier output was written."""
        self._output.flush()
        self._system(command)

    def fault(self, firing: Firing, text: str) -> None:
        """Report an action that the consumer could not execute for a record."""
        self._on_fault(Fault(firing.plan.epid, firing.probe, firing.cpu, LIBRARY, text=text))


def _variable(firing: Firing, records: Sequence[RecordDescription]) -> int:
    return UNSIGNED[records[0].size](firing.data, firing.offset + records[0].offset)
