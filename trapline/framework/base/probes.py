"""Probes, and finding them by description.

Source: FreeBSD dtrace.c dtrace_probe_create(), dtrace_match().
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trapline.framework.base.glob import is_glob, matcher
from trapline.framework.base.program import ProbeDescription

if TYPE_CHECKING:
    from providers.base import Provider


class Probe:
    """One probe (dtrace_probe_t)."""

    __slots__ = ("aframes", "arg", "function", "id", "module", "name", "provider")

    def __init__(
        self, number: int, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any
    ) -> None:
        self.id = number
        self.provider = provider
        self.module = module
        self.function = function
        self.name = name
        self.aframes = aframes
        self.arg = arg

    @property
    def description(self) -> ProbeDescription:
        """Its four names and its id."""
        return ProbeDescription(self.provider.name, self.module, self.function, self.name, self.id)


class ProbeTable:
    """All probes, by id and by name."""

    def __init__(self) -> None:
        self._probes: list[Probe | None] = [None]  # ids count from 1
        self._by_function: defaultdict[str, dict[int, Probe]] = defaultdict(dict)
        self._by_module: defaultdict[str, dict[int, Probe]] = defaultdict(dict)
        self._by_name: defaultdict[str, dict[int, Probe]] = defaultdict(dict)

    def __iter__(self) -> Iterator[Probe]:
        return (probe for probe in self._probes if probe is not None)

    def create(self, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any) -> Probe:
        """Add a probe under the next id."""
        probe = Probe(len(self._probes), provider, module, function, name, aframes, arg)
        self._probes.append(probe)
        self._by_function[function][probe.id] = probe
        self._by_module[module][probe.id] = probe
        self._by_name[name][probe.id] = probe
        return probe

    def remove(self, probe: Probe) -> None:
        """Remove a probe; its id is not used again."""
        self._probes[probe.id] = None
        del self._by_function[probe.function][probe.id]
        del self._by_module[probe.module][probe.id]
        del self._by_name[probe.name][probe.id]

    @property
    def newest(self) -> int:
        """The highest id that was given."""
        return len(self._probes) - 1

    def get(self, number: int) -> Probe | None:
        """Return a probe by its id, None if there is none."""
        return self._probes[number] if 0 <= number < len(self._probes) else None

    def lookup(self, provider: Provider, module: str, function: str, name: str) -> Probe | None:
        """Find a probe by its names, which are not globs."""
        for probe in self._by_function.get(function, {}).values():
            if probe.provider is provider and probe.module == module and probe.name == name:
                return probe
        return None

    def match(self, wanted: ProbeDescription) -> Sequence[Probe]:
        """Return the probes a description matches, by id.

        A given id is looked up first, and the names must match, too.

        An empty description matches the probes that have a function: not BEGIN, not profile's
        (dtrace_match).
        """
        if wanted == ProbeDescription():
            return [probe for probe in self if probe.function]
        if wanted.id:
            found = self.get(wanted.id)
            candidates: Sequence[Probe] = () if found is None else (found,)
        else:
            candidates = self._candidates(wanted)
        tests = [
            (attribute, test)
            for attribute, test in (
                (_provider_name, matcher(wanted.provider)),
                (_module, matcher(wanted.module)),
                (_function, matcher(wanted.function)),
                (_name, matcher(wanted.name)),
            )
            if test is not None
        ]
        return [probe for probe in candidates if all(test(attribute(probe)) for attribute, test in tests)]

    def _candidates(self, wanted: ProbeDescription) -> Sequence[Probe]:
        """Return the probes under the rarest name that is given exactly."""
        exact = (
            table.get(name, {})
            for table, name in (
                (self._by_function, wanted.function),
                (self._by_module, wanted.module),
                (self._by_name, wanted.name),
            )
            if name and not is_glob(name)
        )
        shortest = min(exact, key=len, default=None)
        return list(self) if shortest is None else list(shortest.values())


def _provider_name(probe: Probe) -> str:
    return probe.provider.name


def _module(probe: Probe) -> str:
    return probe.module


def _function(probe: Probe) -> str:
    return probe.function


def _name(probe: Probe) -> str:
    return probe.name
