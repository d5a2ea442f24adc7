"""Searches for probes, as one consumer makes them.

Source: FreeBSD dtrace.c, the ioctls PROVIDER, PROBES, PROBEMATCH and PROBEARG.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from providers.base import ArgumentDescription, Provider
from trapline.framework.base.device import NO_MORE_PROBES, DeviceError, ProbeInfo
from trapline.framework.base.probes import Probe
from trapline.framework.base.program import ProbeDescription
from trapline.framework.probe.registry import Registry


class Search:
    """The searches for probes of one consumer."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._pattern = ProbeDescription()
        """The pattern that was last looked for."""
        self._matched: Sequence[Probe] = ()
        """The probes that it matches."""
        self._ids: Sequence[int] = ()
        """Their numbers."""

    def provider(self, name: str) -> Provider:
        """Return a provider.  Raises `DeviceError` ESRCH."""
        found = self._registry.provider(name)
        if found is None:
            raise DeviceError("ESRCH", f"there is no provider {name}")
        return found

    def next_probe(self, pattern: ProbeDescription | None, number: int) -> ProbeInfo:
        """Return the first probe that matches (None: any) with a number of at least `number`.

        At the beginning of a search, with number 0, the providers create the probes of the pattern.
        Raises `DeviceError` ESRCH when there are no more.
        """
        found = self._from(number) if pattern is None else self._matching_from(pattern, number)
        if found is None:
            refusal = "" if pattern is None or number else self._registry.refusal(pattern)
            raise DeviceError("ESRCH", refusal or NO_MORE_PROBES)
        return ProbeInfo(found.id, found.description, found.provider.attributes)

    def _from(self, number: int) -> Probe | None:
        table = self._registry.table
        found = (table.get(place) for place in range(number, table.newest + 1))
        return next((probe for probe in found if probe is not None), None)

    def _matching_from(self, pattern: ProbeDescription, number: int) -> Probe | None:
        if not number or self._pattern != pattern:
            self._pattern, self._matched = pattern, self._registry.match(pattern)
            self._ids = [probe.id for probe in self._matched]
        place = bisect_left(self._ids, number)
        return self._matched[place] if place < len(self._ids) else None

    def probes(self, pattern: ProbeDescription | None = None) -> Sequence[ProbeInfo]:
        """Return the probes that match, by id; None: all."""
        found = self._registry.table if pattern is None else self._registry.match(pattern)
        return [ProbeInfo(probe.id, probe.description, probe.provider.attributes) for probe in found]

    def probe_argument(self, probe_id: int, index: int) -> ArgumentDescription | None:
        """Return the type of a probe's argument.

        Raises `DeviceError` EINVAL for an unknown probe.
        """
        probe = self._registry.table.get(probe_id)
        if probe is None:
            raise DeviceError("EINVAL", f"there is no probe {probe_id}")
        return probe.provider.argument_description(probe.id, probe.arg, index)
