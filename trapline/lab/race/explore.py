"""Exploration of a race, and its replay from one line of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from emu.isa import ISAS
from emu.support.did_you_mean import did_you_mean
from trapline.lab.race.methods import METHODS, SCENARIOS
from trapline.lab.race.model import Model, Race
from trapline.lab.race.objects.method import replayed
from trapline.lab.race.patch import RaceError
from trapline.lab.race.probe_names import find
from trapline.lab.race.search import BOUND, Found, ReplayError, follow, search
from trapline.lab.race.state import Move

MODELLED: Final = (
    "modelled: stores that tear or are seen late, fetches of old bytes until a CPU synchronizes, interrupts between "
    "any two instructions, traps, the framework's cross calls; real instructions and handlers are executed"
)
NOT_MODELLED: Final = (
    "not modelled: data races of the program itself, speculation that leaves no trace, errata beyond --erratum, "
    "translations (a shootdown synchronizes), loops beyond 12 instructions"
)


@dataclass(frozen=True)
class Explored:
    """A race, and the result of its search."""

    model: Model
    found: Found

    @property
    def race(self) -> Race:
        """The race that was explored."""
        return self.model.race

    @property
    def line(self) -> str:
        """The text that replays the failure."""
        race = self.race
        steps = ",".join(move.token for move in self.found.trace)
        method = (race.own.words if race.own else f"method={race.method}") + " coherent=yes" * race.coherent
        method += f" erratum={race.erratum}" if race.erratum else ""
        return (
            f"isa={race.patch.isa.name} patch={race.patch.name} {method} scenario={race.scenario} "
            f"cpus={race.cpus} passes={race.passes} steps={steps}"
        )


def explore(race: Race, *, bound: int = BOUND) -> Explored:
    """Explore a race.  Raises `RaceError` if the provider refuses the place."""
    model = Model(race)
    return Explored(model, search(model, bound=bound))


def replay(line: str) -> tuple[Model, tuple[Move, ...]]:
    """Return the model and the steps of a line that `Explored.line` has returned.

    Raises `RaceError` and `emu.elf.file.ElfError`.
    """
    words = dict(word.split("=", 1) for word in line.split() if "=" in word)
    wanted = ("isa", "patch", "object" if "object" in words else "method", "steps")
    missing = [name for name in wanted if name not in words]
    if missing:
        raise RaceError(f"a replay needs {missing[0]}=...: take the line that a failure ends with")
    isa = ISAS[chosen(words["isa"], ISAS, "ISA")]
    try:
        patch = find(isa, words["patch"])
        own = replayed(patch, words)
        race = Race(
            patch,
            own.name if own else chosen(words["method"], METHODS, "method"),
            chosen(words.get("scenario", Race.scenario), SCENARIOS, "scenario"),
            int(words.get("cpus", Race.cpus)),
            int(words.get("passes", Race.passes)),
            own,
            words.get("coherent") == "yes",
            words.get("erratum", ""),
        )
        model = Model(race)
        return model, follow(model, [step for step in words["steps"].split(",") if step])
    except ReplayError as error:
        raise RaceError(str(error)) from None
    except ValueError:
        raise RaceError("a replay's cpus and passes are numbers") from None


def chosen(name: str, known: Iterable[str], what: str) -> str:
    """Return the name itself if it is known.  Raises `RaceError` if it is not."""
    names = list(known)
    if name not in names:
        others = f": there are {', '.join(names)}"
        raise RaceError(f"no {what} '{name}'{did_you_mean(name, names, others)}")
    return name
