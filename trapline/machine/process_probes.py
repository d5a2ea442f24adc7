"""The probes of processes, for both guests: from a description to its provider."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from emu.elf.file import ElfError
from providers.fasttrap import Fasttrap, PidError, PidProbes, UsdtProbes, Wanted, parse_provider, probe_name
from providers.fidelity import Fidelity
from trapline.consumer.program.compile import ProcessProbeError
from trapline.framework.base.glob import compile_glob, is_glob
from trapline.framework.base.program import ProbeDescription

if TYPE_CHECKING:
    from emu.guest.objects import LoadedObject
    from emu.guest.processes import Objects, Processes
    from trapline.framework.device.dtrace import DTrace

PID: Final = "pid"
_REFUSALS_TOLD: Final = 5


@dataclass(slots=True)
class Refusals:
    """Reasons why tracepoints were not installed: the first are reported, the rest are counted."""

    report: Callable[[str], object]
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Add a refusal."""
        self.texts.append(text)
        if len(self.texts) <= _REFUSALS_TOLD:
            self.report(text)

    def rest(self) -> tuple[str, ...]:
        """Return a message about those that were not reported."""
        more = len(self.texts) - _REFUSALS_TOLD
        return (f"{more} more tracepoints were refused (trapline sites --provider pid shows why)",) if more > 0 else ()


class ProcessProbes:
    """The pid and USDT providers over one guest's processes."""

    def __init__(
        self,
        processes: Processes,
        objects: Objects,
        dtrace: DTrace,
        fidelity: Fidelity = Fidelity.EXACT,
        report: Callable[[str], object] = lambda _text: None,
        fasttrap: Fasttrap | None = None,
    ) -> None:
        """`fasttrap` installs the tracepoints, if they are not breakpoints of ours."""
        self._processes = processes
        self._objects = objects
        self.refusals = Refusals(report)
        self._patterns: set[str] = set()
        self.fasttrap = fasttrap or Fasttrap(processes, dtrace, fidelity, report=self.refusals.add)
        self.pid = PidProbes(self.fasttrap, dtrace, objects, dtrace.probes_created)
        self.usdt = UsdtProbes(self.fasttrap, dtrace, objects, dtrace.probes_created)

    def objects(self, pid: int) -> Sequence[LoadedObject]:
        """Return the objects that a process has loaded, the program first.

        It is empty if there is no such process.
        """
        process = self._processes.process(pid)
        return self._objects.of(process) if process is not None else ()

    def _provide_everywhere(self, wanted: ProbeDescription) -> ProbeDescription:
        """Make the markers' probes of all processes that a pattern such as `postgresql*` matches.

        A pattern that begins with a wildcard would look at every object: it takes what there is.
        """
        provider = wanted.provider
        if not is_glob(provider) or is_glob(provider[0]):
            return wanted
        if provider not in self._patterns:
            self._patterns.add(provider)
            self.usdt.provide_everywhere(compile_glob(provider).fullmatch)
        return wanted

    def provide(self, wanted: ProbeDescription) -> ProbeDescription:
        """Make the probes of processes that a description names; return it with the probes' names.

        Raises `ProcessProbeError`.
        """
        parsed = parse_provider(wanted.provider)
        if parsed is None:
            return self._provide_everywhere(wanted)
        name, pid = parsed
        try:
            if name == PID:
                module = self.pid.provide(pid, Wanted(wanted.module, wanted.function, wanted.name))
                return replace(wanted, module=module)
            self.usdt.provide(name, pid)
            return replace(wanted, name=probe_name(wanted.name))
        except PidError as error:
            raise ProcessProbeError(error.tag, str(error)) from None
        except ElfError as error:
            raise ProcessProbeError("D_PROC_LIB", str(error)) from None
