"""The enabling of programs: they are checked, compiled and put at probes (dtrace_enabling_t).

Source: FreeBSD dtrace.c dtrace_enabling_match(), dtrace_enabling_replicate(), dtrace_ecb_create().
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trapline.framework.device import DeviceError
from trapline.framework.ecb import Clause, Ecb, Form
from trapline.framework.enabled import Enabled
from trapline.framework.layout import LayoutError, lay_out
from trapline.framework.program import ActionDescription, Difo, EcbDescription, ProbeDescription
from trapline.framework.validate import InvalidDifError, is_destructive, validate

if TYPE_CHECKING:
    from trapline.framework.dtrace import DTrace
    from trapline.framework.native.consumer import NativeConsumer
    from trapline.framework.probes import Probe
    from trapline.framework.state import ConsumerState


class Enabling:
    """See the module; `enabled` receives what is put at probes."""

    def __init__(self, dtrace: DTrace, state: ConsumerState, enabled: Enabled) -> None:
        self.enabled = enabled
        self._dtrace = dtrace
        self._state = state
        self._clauses: list[tuple[EcbDescription, Clause]] = []
        self._valid: set[Difo] = set()
        """The DIF objects that were checked, and whose variables are declared."""
        self._forms: dict[tuple[Difo | None, tuple[ActionDescription, ...]], Form] = {}
        """What clauses compile to, by predicate and actions."""
        self._native: NativeConsumer | None = None
        self._newest = 0

    @property
    def clauses(self) -> Sequence[Clause]:
        """All clauses that are enabled."""
        return [clause for _, clause in self._clauses]

    @property
    def is_destructive(self) -> bool:
        """Whether something that is enabled changes the system."""
        return any(map(_is_destructive, self.enabled.ecbs))

    def add(self, descriptions: Sequence[EcbDescription], options: Mapping[str, int]) -> Sequence[int]:
        """Enable clauses, and return how many probes each matched.

        Raises `DeviceError` EINVAL; nothing is enabled then.
        """
        clauses = [self._prepare(description, options) for description in descriptions]
        added = list(zip(descriptions, clauses, strict=True))
        matched = [self._link(clause, self._dtrace.match(description.probe)) for description, clause in added]
        self._clauses += added
        self._newest = self._dtrace.table.newest
        return matched

    def replicate(self, match: ProbeDescription, create: ProbeDescription, options: Mapping[str, int]) -> None:
        """Enable for `create` what was enabled for `match` (dtrace_enabling_replicate)."""
        for description, _clause in list(self._clauses):
            if description.probe == match:
                copy = replace(description, probe=create)
                clause = self._prepare(copy, options)
                self._link(clause, self._dtrace.match(create))
                self._clauses.append((copy, clause))

    def match_new(self) -> None:
        """Put the clauses at the probes that were created since (dtrace_enabling_match)."""
        since, self._newest = self._newest, self._dtrace.table.newest
        for description, clause in self._clauses:
            self._link(clause, [probe for probe in self._dtrace.table.match(description.probe) if probe.id > since])

    def _prepare(self, description: EcbDescription, options: Mapping[str, int]) -> Clause:
        """Check a clause and compile it.  Raises `DeviceError` EINVAL."""
        objects = [description.predicate, *(action.difo for action in description.actions)]
        try:
            for difo in objects:
                if difo is not None and difo not in self._valid:
                    validate(difo, self._state.variables.declared)
                    self._state.variables.declare(difo)
                    self._valid.add(difo)
            layout = lay_out(description, options)
        except (InvalidDifError, LayoutError) as error:
            raise DeviceError("EINVAL", str(error)) from None
        # What a clause does is the same for all its descriptions; only the numbers of the statements are not.
        doing = description.predicate, tuple(replace(action, statement=0) for action in description.actions)
        if doing not in self._forms:
            self._forms[doing] = Form(description, layout, self._state)
        return Clause(description, layout, self._state, self._forms[doing])

    def _link(self, clause: Clause, probes: Sequence[Probe]) -> int:
        """Put a clause at probes, and return how many those are."""
        for probe in probes:
            self._dtrace.link(probe, self.enabled.add(clause, probe))
        return len(probes)

    def make_native(self, form: Form) -> None:
        """Let machine code run the enablings of clauses that have fired often enough."""
        clause = next(clause for _, clause in self._clauses if clause.form is form)
        if self._native is None:
            from trapline.framework.native.consumer import NativeConsumer  # noqa: PLC0415  few runs need it

            self._native = NativeConsumer(self._state)
        form.native = self._native.compile(clause)
        if form.native is None:
            return
        changed = {}
        for ecb in self.enabled.ecbs:
            if ecb.clause.form is form and not self._state.is_meta(ecb.probe):
                ecb.run = form.native.run(ecb)
                changed[ecb.probe.id] = ecb.probe
        for probe in changed.values():
            self._dtrace.relink(probe)

    def options_changed(self) -> None:
        """Compile later clauses anew: options decide what clauses compile to."""
        self._forms.clear()

    def clear(self) -> None:
        """Take all that is enabled out of the probes, and forget it."""
        self._dtrace.unlink(self.enabled.ecbs)
        self._clauses.clear()
        self._forms.clear()
        self.enabled.clear()


def _is_destructive(ecb: Ecb) -> bool:
    actions = [placed.action for placed in ecb.clause.layout.actions]
    objects = [ecb.clause.predicate, *(action.difo for action in actions)]
    return any(action.kind.is_destructive for action in actions) or any(
        difo is not None and is_destructive(difo) for difo in objects
    )
