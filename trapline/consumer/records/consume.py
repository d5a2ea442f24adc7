"""The consumption of records: the heading, a line for each record, faults, and actions.

Source: FreeBSD libdtrace dt_consume.c, and cmd/dtrace/dtrace.c for the text of dtrace(1) around the
data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from emu.support.words import WORD_MASK
from trapline.consumer.records.actions import Actions
from trapline.consumer.records.decode import BufferRecord, Turn
from trapline.consumer.records.faults import Fault
from trapline.consumer.records.flow import Flow
from trapline.consumer.records.plan import Planner
from trapline.consumer.records.statements import Firing, RecordPlan
from trapline.consumer.text.columns import pad
from trapline.consumer.text.default_format import SIGNED
from trapline.framework.base.program import ProbeDescription

if TYPE_CHECKING:
    from trapline.consumer.aggregations.aggregate import Aggregate
    from trapline.consumer.output import Output
    from trapline.consumer.records.faults import Drop
    from trapline.consumer.records.report import Report
    from trapline.consumer.text.symbols import Symbols
    from trapline.framework.base.device import Device, ProbeInfo
    from trapline.options import Options

HEADING: Final = f"{'CPU':>3} {'ID':>6} {'FUNCTION:NAME':>32}\n"
FLOW_HEADING: Final = f"{'CPU':>3} {'FUNCTION':<41}\n"
_FLOW_WIDTH: Final = -41


@dataclass(slots=True)
class Handlers:
    """Callbacks for events of the trace; its text is always written to the output."""

    fault: Callable[[Fault], None]
    drop: Callable[[Drop], None]
    firing: Callable[[Firing], bool] | None = None
    """Called before a record is shown; False: it is not shown."""
    system: Callable[[str], None] = lambda _command: None
    """Runs a command of system()."""
    show_type: Callable[[str, bytes], str | None] = lambda _name, _data: None
    """Shows data as a type, for print(); None: the type is unknown."""


class Consumer:
    """Consumes the records of one device."""

    def __init__(
        self,
        device: Device,
        symbols: Symbols,
        options: Options,
        aggregate: Aggregate,
        report: Report,
        output: Output,
        handlers: Handlers,
    ) -> None:
        self._device = device
        self._options = options
        self._output = output
        self._handlers = handlers
        self.actions = Actions(aggregate, options, output, handlers.system, handlers.fault, self._option_changed)
        self._planner = Planner(symbols, options, report, self.actions, device.format, handlers.show_type)
        self._plans: dict[int, RecordPlan] = {}
        self._probes: dict[int, ProbeInfo] = {}
        self._flow = Flow(lambda epid: self.plan(epid).probe.id)
        self._headed = False
        self.abandoned = False
        """Set to show nothing more: the user interrupted twice."""

    def plan(self, epid: int) -> RecordPlan:
        """Return the plan of an EPID."""
        plan = self._plans.get(epid)
        if plan is None:
            enabled = self._device.enabled_probe(epid)
            plan = self._plans[epid] = self._planner.plan(enabled, self._probe(enabled.probe_id))
        return plan

    def turn(self, record: BufferRecord) -> Turn:
        """Return which records come first and last whatever their time: those of BEGIN and END."""
        return _TURNS.get(_full_name(self.plan(record.epid).probe.description), Turn.OTHER)

    def consume(self, records: Iterable[BufferRecord]) -> None:
        """Show records and do what they say.

        Without option temporal the CPUs come one after the other, each with an indentation of its
        own.
        """
        temporal, cpu = self._options.is_set("temporal"), None
        for record in records:
            if self.abandoned:
                return
            if not temporal and record.cpu != cpu:
                self._flow.indent, cpu = 0, record.cpu
            plan = self.plan(record.epid)
            if plan.is_error:
                self._fault(plan, record)
            else:
                self._show(plan, record)
            self._flow.last = record.epid

    def _show(self, plan: RecordPlan, record: BufferRecord) -> None:
        options, flow = self._options, self._options.is_set("flowindent")
        name = self._flow.line(record, plan.probe.id, plan.probe.description) if flow else ""
        handler = self._handlers.firing
        if handler and not handler(Firing(plan, record.cpu, record.timestamp, record.data, record.offset)):
            return
        quiet = options.is_set("quiet")
        if not self._headed:
            self._headed = True
            self._output.write(FLOW_HEADING if flow else "" if quiet else HEADING)
        lead = f"{record.cpu:3d} {pad(name, _FLOW_WIDTH)} " if flow else "" if quiet else f"{record.cpu:3d} {plan.lead}"
        texts = plan.texts
        if texts is not None:
            data, offset = record.data, record.offset
            self._output.write(lead + "".join([text(data, offset) for text in texts]) + ("" if quiet else "\n"))
            return
        firing = Firing(plan, record.cpu, record.timestamp, record.data, record.offset)
        self._output.write(lead)
        for step in plan.steps:
            if step.text is not None:
                self._output.write(step.text(record.data, record.offset))
            elif step.effect is not None:
                step.effect(firing)
        if not options.is_set("quiet"):
            self._output.write("\n")

    def _fault(self, plan: RecordPlan, record: BufferRecord) -> None:
        """Report a fault: the five arguments of the ERROR probe."""
        records = self._device.enabled_probe(plan.epid).records
        epid, action, offset, code, address = (SIGNED[r.size](record.data, record.offset + r.offset) for r in records)
        probe = self.plan(epid).probe
        self._handlers.fault(Fault(epid, probe, record.cpu, code, action, offset, address & WORD_MASK))

    def _option_changed(self, name: str) -> None:
        """Discard the plans, because the form of data depends on the options."""
        del name
        self._plans.clear()

    def _probe(self, probe_id: int) -> ProbeInfo:
        """Describe a probe."""
        if probe_id not in self._probes:
            (self._probes[probe_id],) = self._device.probes(ProbeDescription(id=probe_id))
        return self._probes[probe_id]


def _full_name(description: ProbeDescription) -> tuple[str, str]:
    return description.provider, description.name


_TURNS: Final = {("dtrace", "BEGIN"): Turn.BEGIN, ("dtrace", "END"): Turn.END}
