"""Probes and programs described: the lists of -l, the stability reports of -v.

Source: FreeBSD cmd/dtrace/dtrace.c (list_probe(), list_stmt(), print_stmt_info(),
print_ecb_info()).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

from emu.support.immutable import immutable
from providers.base import Attribute, minimum
from trapline.consumer.jsonlines import probe_line
from trapline.consumer.program.probe_list import argument_types, list_line, show_attribute, show_probe
from trapline.d.check.stability import description_attribute
from trapline.framework.base.program import STABLE

if TYPE_CHECKING:
    from trapline.consumer.output import Output
    from trapline.consumer.program.compile import Compiled
    from trapline.framework.base.device import Device, ProbeInfo
    from trapline.framework.base.program import ProbeDescription


@immutable
class Describer:
    """Describes what a device has."""

    device: Device
    output: Output
    as_json: bool
    verbose: bool
    """Whether a list has each probe's stability and arguments."""

    def every_probe(self) -> None:
        """List all probes there are."""
        self._list(self.device.probes())

    def matching(self, one: Compiled) -> Iterator[ProbeDescription]:
        """List the probes that a program's descriptions match.

        Yield the descriptions that match none.
        """
        for ecb in one.program.ecbs:
            probes = self.device.probes(ecb.probe)
            if not probes:
                yield ecb.probe
            self._list(probes)

    def _list(self, probes: Sequence[ProbeInfo]) -> None:
        for probe in probes:
            if self.as_json:
                self.output.write(probe_line(probe, self._arguments(probe) if self.verbose else None))
                continue
            self.output.write(list_line(probe))
            if self.verbose:
                self._show(probe, probe.description)

    def _arguments(self, probe: ProbeInfo) -> list[str]:
        return argument_types(lambda index: self.device.probe_argument(probe.id, index))

    def _show(self, probe: ProbeInfo, pattern: ProbeDescription) -> None:
        self.output.write(show_probe(probe, pattern, lambda index: self.device.probe_argument(probe.id, index)))

    def stability(self, one: Compiled, *, each: bool) -> None:
        """Report the stability of a program, and with `each` of every description of it."""
        described = [self._attribute(ecb.probe) for ecb in one.program.ecbs]
        least = reduce(minimum, described, STABLE) if described else STABLE
        self.output.write(f"\nStability attributes for {one.source.kind} {one.source.name}:\n")
        self.output.write(show_attribute("Minimum Probe Description Attributes", least))
        self.output.write(show_attribute("Minimum Statement Attributes", one.program.stability))
        if each:
            for ecb in one.program.ecbs:
                self.output.write(f"\n{ecb.probe}\n")
                for probe in self.device.probes(ecb.probe)[:1]:
                    self._show(probe, ecb.probe)
        self.output.write("\n")

    def _attribute(self, pattern: ProbeDescription) -> Attribute:
        probes = self.device.probes(pattern)
        return description_attribute(probes[0], pattern) if probes else STABLE
