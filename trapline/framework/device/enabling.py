"""The enabling of programs: they are checked, compiled and put at probes (dtrace_enabling_t).

Source: FreeBSD dtrace.c dtrace_enabling_match(), dtrace_enabling_replicate(), dtrace_ecb_create().
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from trapline.framework.base.device import DeviceError
from trapline.framework.base.probes import Probe
from trapline.framework.base.program import ActionDescription, Difo, EcbDescription, ProbeDescription
from trapline.framework.buffers.layout import LayoutError, lay_out
from trapline.framework.dif.validate import InvalidDifError, is_destructive, validate
from trapline.framework.probe.clause import PlainClause, runner
from trapline.framework.probe.ecb import Clause, Ecb, Form, Run
from trapline.framework.probe.registry import Registry
from trapline.framework.probe.runtime import Runtime

if TYPE_CHECKING:
    from trapline.framework.native.consumer import NativeConsumer


class Enabling:
    """Checks one consumer's programs, compiles them, and notes in `enabled` what it puts at probes."""

    def __init__(self, registry: Registry, runtime: Runtime) -> None:
        self._registry = registry
        self._runtime = runtime
        self._enabled = runtime.enabled
        self._clauses: list[tuple[EcbDescription, Clause]] = []
        self._valid: set[Difo] = set()
        """The DIF objects that were checked, and whose variables are declared."""
        self._forms: dict[tuple[Difo | None, tuple[ActionDescription, ...]], Form] = {}
        """The compiled forms of clauses, by predicate and actions."""
        self._native: NativeConsumer | None = None
        self._newest = 0

    @property
    def clauses(self) -> Sequence[Clause]:
        """All clauses that are enabled."""
        return [clause for _, clause in self._clauses]

    @property
    def is_destructive(self) -> bool:
        """Whether an enabled clause changes the system."""
        return any(map(_is_destructive, {ecb.clause for ecb in self._enabled.ecbs}))

    def add(self, descriptions: Sequence[EcbDescription], options: Mapping[str, int]) -> Sequence[int]:
        """Enable clauses, and return how many probes each matched.

        Raises `DeviceError` EINVAL; nothing is enabled then.
        """
        clauses = [self._prepare(description, options) for description in descriptions]
        added = list(zip(descriptions, clauses, strict=True))
        matched = [self._link(clause, self._registry.match(description.probe)) for description, clause in added]
        self._clauses += added
        self._newest = self._registry.table.newest
        return matched

    def replicate(self, match: ProbeDescription, create: ProbeDescription, options: Mapping[str, int]) -> None:
        """Enable for `create` what was enabled for `match` (dtrace_enabling_replicate)."""
        for description, _clause in list(self._clauses):
            if description.probe == match:
                copy = replace(description, probe=create)
                clause = self._prepare(copy, options)
                self._link(clause, self._registry.match(create))
                self._clauses.append((copy, clause))

    def match_new(self) -> None:
        """Put the clauses at the probes that were created since (dtrace_enabling_match)."""
        since, self._newest = self._newest, self._registry.table.newest
        for description, clause in self._clauses:
            self._link(clause, [probe for probe in self._registry.table.match(description.probe) if probe.id > since])

    def _prepare(self, description: EcbDescription, options: Mapping[str, int]) -> Clause:
        """Check a clause and prepare it.  Raises `DeviceError` EINVAL."""
        objects = [description.predicate, *(action.difo for action in description.actions)]
        try:
            for difo in objects:
                if difo is not None and difo not in self._valid:
                    validate(difo, self._runtime.variables.declared)
                    self._runtime.variables.declare(difo)
                    self._valid.add(difo)
            layout = lay_out(description, options)
        except (InvalidDifError, LayoutError) as error:
            raise DeviceError("EINVAL", str(error)) from None
        # A clause has the same actions for all its descriptions; only the numbers of the statements differ.
        doing = description.predicate, tuple(replace(action, statement=0) for action in description.actions)
        form = self._forms.get(doing)
        clause = Clause(description.predicate, layout, form or Form())
        if form is None:
            clause.form.make = PlainClause(clause, self._runtime, self._make_native).make
            self._forms[doing] = clause.form
        return clause

    def _link(self, clause: Clause, probes: Sequence[Probe]) -> int:
        """Put a clause at probes, and return how many those are."""
        self._registry.link(self._enabled.add(clause, probes, self._runner))
        return len(probes)

    def _runner(self, ecb: Ecb) -> Run:
        return runner(ecb, self._runtime)

    def _make_native(self, form: Form) -> None:
        """Let machine code run the enablings of clauses that have fired often enough."""
        clause = next(clause for _, clause in self._clauses if clause.form is form)
        if self._native is None:
            from trapline.framework.native.consumer import NativeConsumer  # noqa: PLC0415  few runs need it

            self._native = NativeConsumer(self._runtime)
        form.native = self._native.compile(clause)
        if form.native is None:
            return
        for ecb in self._enabled.ecbs:
            if ecb.clause.form is form:
                ecb.forget()
                self._registry.relink(ecb.probe)

    def options_changed(self) -> None:
        """Compile later clauses anew: options decide what clauses compile to."""
        self._forms.clear()

    def clear(self) -> None:
        """Remove all enablings from their probes, and forget them."""
        self._registry.unlink(self._enabled.ecbs)
        self._clauses.clear()
        self._forms.clear()
        self._enabled.clear()


def _is_destructive(clause: Clause) -> bool:
    kinds = (placed.action.kind for placed in clause.layout.actions)
    return any(kind.is_destructive for kind in kinds) or any(map(is_destructive, clause.objects))
