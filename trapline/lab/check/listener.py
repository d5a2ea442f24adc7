"""Takes the place of the framework while providers are checked: firings are only counted."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Listener:
    """Takes providers, probes and firings, and counts the firings.

    It does what providers need of a `providers.base.Framework`; nothing is ever enabled through it.
    """

    def __init__(self) -> None:
        self.created: list[tuple[str, Any]] = []
        """Name of each probe, and what its provider keeps with it; its number is its place here,
        from 1."""
        self.hits: Counter[int] = Counter()
        """Number of a probe -> how often it fired."""

    @property
    def fired(self) -> int:
        """How often any of them did."""
        return self.hits.total()

    def by_name(self) -> Counter[str]:
        """Return how often the probes of each name fired."""
        found: Counter[str] = Counter()
        for number, count in self.hits.items():
            found[self.created[number - 1][0]] += count
        return found

    def register(self, _provider: object) -> None:
        """Take a provider."""

    def probe_create(self, _provider: object, _module: str, _function: str, name: str, _aframes: int, kept: Any) -> int:
        """Take a probe."""
        self.created.append((name, kept))
        return len(self.created)

    def native_runs(self, _probe_id: int) -> int:
        """Return 0: every firing is noted in Python."""
        return 0

    def probe(self, number: int, *_arguments: int) -> None:
        """Take a firing."""
        self.hits[number] += 1
