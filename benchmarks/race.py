"""Every order of patching and executing, for the patches of the whole kernel guest.

For each ISA, provider and method, three patches of each kind are explored in all scenarios, with
different mnemonics if there are any.  Patches are of one kind if they and the displaced
instructions have the same lengths and are at the same place in eight aligned bytes: what may tear
depends on nothing else.  (What the displaced instruction computes is checked for every site and
encoding by `trapline check`.)  Stopped, the work goes on where it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import emu
import providers
import trapline.lab.race
from benchmarks.figures import Cell, Figures, Scale
from benchmarks.ongoing import Kept, kept
from emu.isa import ISAS, Isa
from trapline.lab.race.methods import OURS, SELF, USUAL, scenarios
from trapline.lab.race.model import Model, Race
from trapline.lab.race.patch import NoPortError, Patch
from trapline.lab.race.probe_names import functions, patches
from trapline.lab.race.processor import Processor
from trapline.lab.race.search import search

_BLOCK: Final = 8
# Besides the method of the provider's system, and ours: the method under which a site of several instructions holds.
_MORE: Final = {"sdt": ("int3-quiesce",)}
_CPUS: Final = (2, 3)
# Patches of a kind, and bytes of the longest instruction.
_OF_A_KIND: Final = 3
_LONGEST: Final = 16
# Functions of the smallest amount of work: every provider has a site in one of them.
_FEW: Final = 60


class Total(NamedTuple):
    """The totals of one provider by one method."""

    races: int = 0
    states: int = 0
    steps: int = 0
    undecided: int = 0


def _kinds(isa: Isa, provider: str, most: int | None) -> tuple[int, int, list[Patch]]:
    """Return the numbers of a provider's sites and of their kinds, and patches of each kind.

    `most`: so many functions are looked at; None: all.
    """
    found: dict[tuple[int, int, int], dict[str, Patch]] = {}
    sites = 0
    for function in islice(functions(isa, None), most):
        for patch in patches(isa, provider, function):
            sites += 1
            code = patch.code[patch.offset : patch.offset + _LONGEST]
            same = found.setdefault((isa.instruction_length(code), len(patch.new), patch.site % _BLOCK), {})
            if len(same) < _OF_A_KIND:
                same.setdefault(patch.text(code, patch.site).split()[0], patch)
    return sites, len(found), [patch for same in found.values() for patch in same.values()]


def _races(patch: Patch, method: str, cpus: Sequence[int]) -> Iterator[Race]:
    for scenario in scenarios(patch.provider):
        if scenario == SELF:
            # Others meanwhile are in the scenario that contains the others.
            yield Race(patch, method, scenario, 1)
            continue
        for number in cpus:
            # With three CPUs, only the scenario that contains the others.
            if number == _CPUS[0] or scenario == Race.scenario:
                yield Race(patch, method, scenario, number)


def _explored(isa: Isa, provider: str, scale: Scale) -> tuple[list[list[Cell]], str]:
    """Return the rows of one provider, and why there are none: "" if there are."""
    try:
        sites, kinds, found_patches = _kinds(isa, provider, _FEW if scale.smallest else None)
    except NoPortError as error:
        return [], str(error)
    rows: list[list[Cell]] = []
    wanted = found_patches[:2] if scale.smallest else found_patches
    usual = USUAL[provider]
    for method in dict.fromkeys((usual, *_MORE.get(provider, ()), OURS)):
        total, wrong = Total(), Counter[str]()
        for patch in wanted:
            processor = Processor(patch)
            for race in _races(patch, method, _CPUS[:1] if scale.smallest else _CPUS):
                found = search(Model(race, processor))
                if found.failure is not None:
                    wrong[found.failure.kind] += 1
                total = Total(
                    total.races + 1,
                    total.states + found.states,
                    total.steps + found.steps,
                    total.undecided + (found.failure is None and not found.complete),
                )
        whose = " and ".join(["its system"] * (method == usual) + ["ours"] * (method == OURS)) or "neither"
        kinds_of_failure = ", ".join(f"{name} {count:,}" for name, count in sorted(wrong.items()))
        rows.append(
            [isa.name, provider, method, whose, sites, kinds, len(wanted), *total[:3], wrong.total(),
             total.undecided, kinds_of_failure]
        )  # fmt: skip
    return rows, ""


def explored(isa: str, provider: str) -> tuple[list[list[Cell]], str]:
    """Explore all patches of one provider on one ISA, in any process; as `_explored`."""
    return _explored(ISAS[isa], provider, Scale())


def units(isas: Iterable[Isa]) -> dict[str, tuple[str, str]]:
    """Return the units of the work: key -> the arguments of `explored`."""
    return {f"{isa.name} {provider}": (isa.name, provider) for isa in isas for provider in USUAL}


def finished() -> Kept:
    """Return the results of finished units that are valid for the present source."""
    return kept("race", emu, providers, trapline.lab.race)


def measure(isas: Sequence[Isa], scale: Scale) -> Figures:
    """Explore; stopped, it goes on where it was."""
    if scale.smallest:
        return figures([_explored(isa, provider, scale) for isa in isas for provider in USUAL])
    done, wanted = finished(), units(isas)
    for key, unit in wanted.items():
        if key not in done.results:
            done.add(key, explored(*unit))
    return figures([done.results[key] for key in wanted])


def figures(found: Iterable[tuple[list[list[Cell]], str]]) -> Figures:
    """Return the table of what was explored."""
    parts = list(found)
    return Figures(
        title="Patching while other CPUs execute, in every order",
        columns=(
            *("ISA", "provider", "method", "whose", "sites", "kinds", "patches"),
            *("races", "states", "steps", "wrong", "undecided", "how"),
        ),
        rows=[row for rows, _why in parts for row in rows],
        note="A race is one patch in one scenario with two CPUs, in one with three, and in one with the patching CPU "
        "alone; a search of a wrong race ends at its first failure.",
        text_columns=frozenset({"ISA", "provider", "method", "whose", "how"}),
        left_out=[why for _rows, why in parts if why],
    )  # fmt: skip
