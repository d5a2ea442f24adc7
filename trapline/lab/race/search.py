"""The search of a race for a failure, and the replay of a failure from one line of text.

It visits all states breadth first, so that a failure has the fewest steps.
"""

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
from trapline.lab.race.state import Failure, Move, World

# The number of states after which a search ends without a verdict.
BOUND: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search."""

    states: int
    steps: int
    """The number of steps between the states."""
    complete: bool
    """Whether every state was reached; False: the bound or a failure ended the search."""
    waiting: int = 0
    """The number of states that were found but not followed, because of the bound."""
    failure: Failure | None = None
    trace: tuple[Move, ...] = ()
    """The shortest way to the failure."""


def search(model: Model, *, bound: int = BOUND, reduce: bool = True) -> Found:
    """Explore a race until all states or the bound are reached, or a failure is found."""
    came: dict[World, tuple[World, str] | None] = {model.first: None}
    layer, steps = [model.first], 0
    while layer:
        following: list[World] = []
        for number, world in enumerate(layer):
            moves = model.moves(world, reduce=reduce)
            steps += len(moves)
            if not moves and not model.finished(world):
                failure = Failure("stuck", "no CPU can continue")
                return Found(len(came), steps, complete=False, failure=failure, trace=_trace(model, came, world, None))
            for move in moves:
                if move.failure is not None:
                    trace = _trace(model, came, world, move)
                    return Found(len(came), steps, complete=False, failure=move.failure, trace=trace)
                assert move.world is not None
                after = model.canonical(move.world)
                if after not in came:
                    came[after] = (world, move.token)
                    following.append(after)
            if len(came) > bound:
                return Found(len(came), steps, complete=False, waiting=len(layer) - number - 1 + len(following))
        layer = following
    return Found(len(came), steps, complete=True)


def _trace(
    model: Model, came: dict[World, tuple[World, str] | None], world: World, last: Move | None
) -> tuple[Move, ...]:
    tokens: list[str] = []
    before = came[world]
    while before is not None:
        world, token = before
        tokens.append(token)
        before = came[world]
    return (*follow(model, tokens[::-1]), *((last,) if last else ()))


class ReplayError(Exception):
    """A step of a replay is not possible; the message says which, on one line."""


def follow(model: Model, tokens: list[str]) -> tuple[Move, ...]:
    """Return the steps that the tokens name.  Raises `ReplayError`."""
    world: World | None = model.first
    taken: list[Move] = []
    for number, token in enumerate(tokens, 1):
        if world is None:
            raise ReplayError(f"step {number}, '{token}', comes after the failure")
        moves = {move.token: move for move in model.moves(world, reduce=False)}
        if token not in moves:
            raise ReplayError(f"step {number}, '{token}', is not possible: there are {', '.join(moves) or 'none'}")
        taken.append(moves[token])
        after = moves[token].world
        world = after and model.canonical(after)
    return tuple(taken)


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
    """Explore a race.  Raises `RaceError` if the provider refuses the site."""
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
