"""The search: it visits all states breadth first, so that a failure has the fewest steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from trapline.lab.race.model import Model
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
        for place, world in enumerate(layer):
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
                return Found(len(came), steps, complete=False, waiting=len(layer) - place - 1 + len(following))
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
