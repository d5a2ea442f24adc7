"""Sites with the same instruction, which are tried together.

To put a probe in place and to learn its hits costs a hundred times as much as one more state.  So
of the sites that are alike only the first and the last are tried where they are; the states of
those between are tried where the first one is.

Two sites are alike if the bytes of their instruction are equal, the provider decides the same about
both (its decision is data, and is compared), and the instruction does not cross into another page.
What the instruction does, and what the provider does in its place, depend on the state and on the
address; the address only enters as a summand, in a target or a return address.  Two such functions
that are equal at two addresses are equal at all.  `benchmarks.alike` tests this: it checks whole
programs in both ways, and compares.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.displaced.decision import Emulated, OutOfLine, Stepped
from emu.engine.memory.pages import PAGE

if TYPE_CHECKING:
    from trapline.lab.check.cpu.site import CheckSite

Accepted = Emulated | OutOfLine | Stepped

# The smallest number of sites for which it is worthwhile: the first and the last are tried in any case.
FEWEST: Final = 3


def ordered(sites: Iterable[CheckSite]) -> list[CheckSite]:
    """Return sites in an order in which those with the same instruction follow each other."""
    return sorted(sites, key=lambda site: (site.code, site.address))


class Group(NamedTuple):
    """Sites that are alike."""

    sites: list[CheckSite]
    decision: Accepted | None
    """How a provider displaces the instruction; None: the only site is tried by itself."""


def groups(sites: Iterable[CheckSite], decide: Callable[[CheckSite], Accepted | None]) -> Iterator[Group]:
    """Yield the sites, those that follow each other and are alike together.

    `decide` returns the decision about one.
    """
    together: list[CheckSite] = []
    before: Accepted | None = None
    for site in sites:
        decision = decide(site)
        if together and not (
            before is not None and decision is not None and before == decision and _same(together[0], site, before)
        ):
            yield Group(together, before)
            together = []
        together.append(site)
        before = decision
    if together:
        yield Group(together, before)


def parts(found: Iterable[Group]) -> Iterator[Group]:
    """Yield the sites that are tried at one of them: of many that are alike, all but the last."""
    for sites, decision in found:
        if len(sites) < FEWEST:
            yield from (Group([site], decision) for site in sites)
        else:
            yield Group(sites[:-1], decision)
            yield Group(sites[-1:], decision)


def _same(first: CheckSite, site: CheckSite, decision: Accepted) -> bool:
    """Return whether the instructions of two sites are the same, and inside a page."""
    length = decision.length
    inside = all(one.address % PAGE + length <= PAGE for one in (first, site))
    return inside and first.code[:length] == site.code[:length]
