"""The tracing of the dtrace command: programs are enabled, the guest runs, the results are printed.

Source: FreeBSD cmd/dtrace/dtrace.c (main() from dtrace_go() on, exec_prog()).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from emu.elf.debug_files import folders
from emu.engine.time.clock import NANOSECONDS
from emu.support.immutable import immutable
from trapline.consumer import jsonlines
from trapline.consumer.elements import aggregations
from trapline.consumer.errors import ConsumerError, SavingError
from trapline.consumer.loop import TracingLoop
from trapline.consumer.output import SUCCESS
from trapline.export.events import ExportError
from trapline.framework.base.program import ActionKind

if TYPE_CHECKING:
    from trapline.consumer.environment import TracedMachine
    from trapline.consumer.export import Exporter
    from trapline.consumer.loop import HostLimit
    from trapline.consumer.oformat import Document
    from trapline.consumer.output import Messages, Output
    from trapline.consumer.program.compile import Compiled
    from trapline.consumer.program.describe import Describer
    from trapline.consumer.request import Request
    from trapline.consumer.session import Session


# The names of probes of the clock, where the provider is left out.
_TICK: Final = re.compile(r"(profile|tick)-\w")


@immutable
class Tracing:
    """One trace, from the first enabling to the last line."""

    session: Session
    machine: TracedMachine
    request: Request
    describer: Describer
    output: Output
    limit: HostLimit
    messages: Messages
    exporter: Exporter | None
    document: Document | None
    """The document of -x oformat."""

    def run(self, compiled: Sequence[Compiled]) -> int:
        """Enable programs, trace until the end, and return the status of the command.

        Raises `trapline.consumer.output.CommandEnd`.
        """
        matched = sum(self._enable(one) for one in compiled)
        if self.session.options.is_set("grabanon"):
            matched += self._claim_anonymous()
        if not self.request.execute:
            return SUCCESS
        if not matched and not self.request.allow_zero:
            self.messages.fail(f"no probes {'matched' if compiled else 'specified'}")
        try:
            adjustments = self.session.go()
        except ConsumerError as error:
            self.messages.fail(f"could not enable tracing: {error}")
        for text in adjustments:
            self.messages.say(text)
        if self.session.options.is_set("destructive"):
            self._notice("allowing destructive actions")
        if self._is_endless(compiled):
            self._notice("no command (-c) and no exit(): ^C ends the trace, or -x timeout=10s")
        if self.document is not None:
            self.document.begin()
        loop = TracingLoop(self.session, self.machine, self.limit, self.output, self._notice, self.messages.say)
        try:
            loop.run(commands=len(self.request.machine.commands))
        except ConsumerError as error:
            self.messages.fail(f"processing aborted: {error}")
        self._finish()
        self.output.flush()
        self._tell_lines()
        self._export()
        if loop.crash is not None:
            self.messages.fail(loop.crash.report())
        if self.limit.passed:
            self.messages.fail(self.limit.text(self.machine.guest.now()))
        if loop.cut_off:
            seconds = self.session.options.number("timeout") / NANOSECONDS
            self.messages.say(f"stopped after {seconds:g} s of the guest's time (-x timeout): a command has not ended")
        return (self.session.status or SUCCESS) & 0xFF

    def _finish(self) -> None:
        """Write what follows the records: the aggregations, and the end of a document."""
        abandoned = self.session.consumer.abandoned
        if self.document is not None:
            self.document.end(aggregations=self.request.all_aggregations and not abandoned)
            return
        if not jsonlines.wanted(self.session.options):
            self.output.write("\n")
        if not abandoned:
            self.output.write(self._aggregations())

    def _is_endless(self, compiled: Sequence[Compiled]) -> bool:
        """Return whether probes of the clock fire without end: nothing here stops them."""
        machine, options = self.request.machine, self.session.options
        if machine.commands or machine.pids or options.is_set("timeout") or options.is_set("hosttimeout"):
            return False
        ecbs = [ecb for one in compiled for ecb in one.program.ecbs]
        ends = any(action.kind is ActionKind.EXIT for ecb in ecbs for action in ecb.actions)
        ticks = any(ecb.probe.provider in {"profile", "tick"} or _TICK.match(ecb.probe.name) for ecb in ecbs)
        return ticks and not ends

    def _tell_lines(self) -> None:
        """Tell which modules have no source lines, if these were asked for."""
        missing = self.session.symbols.without_lines
        if missing:
            names, searched = ", ".join(missing), " or ".join(map(str, folders()))
            self.messages.say(f"-x lines: no source lines of {names}: no DWARF in it, and no debug file in {searched}")

    def _export(self) -> None:
        if self.exporter is None:
            return
        try:
            for line in self.exporter.write(self.session, self.machine.guest.now()):
                self.messages.say(line)
        except ExportError as error:
            self.messages.fail(str(error))

    def _aggregations(self) -> str:
        """Show the aggregations that were not printed; as JSON, all of them."""
        if not jsonlines.wanted(self.session.options):
            return self.session.report.unprinted()
        found = aggregations(self.session)
        return "".join(jsonlines.element_line(element, found.functions[element.name]) for element in found)

    def _enable(self, one: Compiled) -> int:
        """Enable a program and return how many probes it matched; with -e only look at it."""
        matched = 0
        if self.request.execute:
            try:
                matched = self.session.enable(one.program)
            except ConsumerError as error:
                self.messages.fail(f"failed to enable '{one.source.name}': {error}")
            count = f"{matched} probe{'' if matched == 1 else 's'}"
            self._notice(f"{one.source.kind} '{one.source.name}' matched {count}")
        if self.request.verbose:
            self.describer.stability(one, each=not self.request.execute)
        return matched

    def _claim_anonymous(self) -> int:
        """Enable what -A has saved, before process 1 runs, as after a reboot.

        Return how many probes it matched.
        """
        from trapline.consumer.program.save import ANONYMOUS, saved_anonymous  # noqa: PLC0415  few commands claim

        try:
            return self.session.enable_dof(saved_anonymous())
        except SavingError as error:
            self.messages.fail(str(error))
        except ConsumerError as error:
            self.messages.fail(f"failed to claim the anonymous state of {ANONYMOUS}: {error}")

    def _notice(self, text: str) -> None:
        """Print a message unless quiet is set."""
        if not self.session.options.is_set("quiet"):
            self.messages.say(text)
