"""The check of exhibits about many CPUs: patching and executing, in every order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit, Showing
from trapline.lab.race.model import Race
from trapline.lab.race.patch import PLACE, Kind, Patch
from trapline.lab.race.report import coverage, player_data, told
from trapline.lab.race.search import Explored, explore

# Providers whose patch is a breakpoint.
_TRAPS: Final = frozenset({"fbt", "pid", "uprobe"})
_FUNCTION: Final = "exhibit"


class Other(NamedTuple):
    """Another code and patch, which the mended system has."""

    code: bytes
    offset: int
    new: bytes


@dataclass(frozen=True, slots=True)
class InOrders:
    """`new` is written at `offset` while CPUs execute the code, in every order."""

    new: bytes
    right: str
    """The method of the right rule."""
    offset: int = 0
    mended: Other | None = None
    """The code and the patch under the right rule, if these were changed."""
    scenario: str = Race.scenario
    cpus: int = Race.cpus
    erratum: str = Race.erratum
    """The bug of the CPU that patches."""

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Showing:
        """Explore."""
        explored = self._explored(exhibit, rules)
        if explored.found.failure is None:
            return Showing(explored.found.complete, (f"{explored.race.method}: {coverage(explored)}",))
        return Showing(agrees=False, lines=(f"{explored.race.method}:", *told(explored.found.trace)))

    def player_data(self, exhibit: Exhibit) -> dict[str, Any]:
        """Return the failure of the old rule for the page with a lane for each CPU."""
        explored = self._explored(exhibit, exhibit.old)
        return player_data(explored.model, explored.found.trace)

    def _explored(self, exhibit: Exhibit, rules: Rules) -> Explored:
        mended = self.mended if self.mended and not rules.method else Other(exhibit.code, self.offset, self.new)
        kind = Kind.TRAP if exhibit.provider in _TRAPS else Kind.JUMP
        patch = Patch(
            exhibit.isa, exhibit.provider, exhibit.name, _FUNCTION, mended.code, PLACE, mended.offset, mended.new, kind
        )
        method = rules.method or self.right
        return explore(Race(patch, method, self.scenario, self.cpus, erratum=self.erratum))
