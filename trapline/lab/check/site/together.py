"""Sites that have their probes at the same time.

To put one probe in index, and to begin machine code for its few states, costs more than these
states.  So many sites are tried together, in rounds: in each, one way of every site is in index,
and machine code goes through the states of all.  Their instructions do not overlap.  A site that
does not agree, for instance because it reads the code of another one, is tried again by itself, and
so is one with a state that machine code leaves to Python.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from trapline.lab.check.cpu.site import CheckSite
    from trapline.lab.check.prober.probers import Treated, Way

# The number of probes at the same time: their scratch space has few pages.
AT_ONCE: Final = 128


@dataclass(slots=True, eq=False)
class Share:
    """The states of one site, which may be tried at another."""

    trial: Trial
    site: CheckSite
    numbers: list[list[int]]
    """The states of each way of execution."""
    by_python: int = 0
    """The number of those that Python has tried."""

    @property
    def states(self) -> int:
        """The number of all its states."""
        return sum(map(len, self.numbers))


@dataclass(slots=True, eq=False)
class Trial:
    """Sites that are alike; all are tried where the first one is."""

    sites: Sequence[CheckSite]
    length: int
    """The number of bytes of the instruction."""
    treated: Treated | None
    """How it is executed; None: each site is checked by itself."""
    repeats: bool = False
    """Whether it is a repeated string instruction."""
    shares: Sequence[Share] = ()
    undecided: bool = False
    """Whether machine code has not found agreement in all states."""

    @property
    def address(self) -> int:
        """The address at which they are tried."""
        return self.sites[0].address

    @property
    def ways(self) -> Sequence[Way]:
        """The ways of execution."""
        return self.treated.ways if self.treated else ()

    def begin_again(self) -> None:
        """Forget what was found."""
        self.undecided = False
        for share in self.shares:
            share.by_python = 0


class Round:
    """One way of many sites, all of which repeat or none: the states of all, one after the other."""

    def __init__(self, shares: Sequence[Share], way: int) -> None:
        self._shares = shares
        self.repeats = any(share.trial.repeats for share in shares)
        """Whether the instructions repeat."""
        self._starts: list[int] = []
        self.numbers: list[int] = []
        """The numbers of the states."""
        self.sites = array("Q")
        """The address at which each is tried."""
        for share in shares:
            self._starts.append(len(self.numbers))
            self.numbers += share.numbers[way]
            self.sites += array("Q", (share.trial.address,)) * len(share.numbers[way])

    def share(self, index: int) -> Share:
        """Return the share that has the state at an index."""
        return self._shares[bisect_right(self._starts, index) - 1]

    def following(self, index: int) -> int:
        """Return the next index; that of another trial if the one of this index is undecided."""
        trial = self.share(index).trial
        if not trial.undecided:
            return index + 1
        ends = zip((*self._starts[1:], len(self.numbers)), self._shares, strict=True)
        return next(end for end, share in reversed([*ends]) if share.trial is trial)


def batches(trials: Iterable[Trial]) -> Iterator[list[Trial]]:
    """Yield as many at a time as may have their probes together."""
    left = iter(trials)
    while batch := list(islice(left, AT_ONCE)):
        yield batch


def overlapping(trials: Iterable[Trial]) -> Iterator[Trial]:
    """Yield those whose instruction begins in another one's: code that is decoded in two ways."""
    end = 0
    for trial in sorted(trials, key=lambda trial: trial.address):
        if trial.address < end:
            yield trial
        end = max(end, trial.address + trial.length)
