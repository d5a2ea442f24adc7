"""A substitute for the framework while providers are checked: it only counts firings."""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections import Counter
from typing import Any

from providers.base import Framework, Provider


class Listener(Framework):
    """Takes providers, probes and firings, and counts the firings; nothing is ever enabled."""

    def __init__(self) -> None:
        self.created: list[tuple[str, Any]] = []
        """Name of each probe, and what its provider keeps with it; its number is its place here,
        from 1."""
        self.hits: Counter[int] = Counter()
        """Number of a probe -> how often it fired."""

    @property
    def fired(self) -> int:
        """The number of all firings."""
        return self.hits.total()

    def by_name(self) -> Counter[str]:
        """Return the number of firings of the probes of each name."""
        found: Counter[str] = Counter()
        for number, count in self.hits.items():
            found[self.created[number - 1][0]] += count
        return found

    def register(self, provider: Provider) -> None:
        """Take a provider."""

    def unregister(self, provider: Provider) -> None:
        """Remove a provider."""

    def probe_create(self, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any) -> int:
        """Take a probe."""
        self.created.append((name, arg))
        return len(self.created)

    def probe_lookup(self, provider: Provider, module: str, function: str, name: str) -> int:
        """Return 0: no provider needs this."""
        return 0

    def probe_arg(self, provider: Provider, probe_id: int) -> Any:
        """Return the provider's data of a probe."""
        return self.created[probe_id - 1][1]

    def native_runs(self, probe_id: int) -> int:
        """Return 0: every firing is noted in Python."""
        return 0

    def probe(self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0) -> None:
        """Take a firing."""
        self.hits[probe_id] += 1
