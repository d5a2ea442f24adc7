"""The report of a race, and its steps as data for the page with a lane for each CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from emu.support.did_you_mean import counted
from trapline.lab.race.model import Model
from trapline.lab.race.patcher_steps import PATCHER
from trapline.lab.race.search import Explored
from trapline.lab.race.state import Mode, Move, World

# The position of a CPU that is not at an instruction of the code.
_ELSEWHERE: Final = {
    Mode.DONE: "done",
    Mode.STOPPED: "stopped",
    Mode.TRAPPED: "in the handler",
    Mode.FORKS: "in a fork",
    Mode.LEAVES: "in the trampoline",
    Mode.PATCHES: "patching",
}


def lane(move: Move) -> int:
    """Return the lane of a step: 0 is the CPU that patches."""
    return 0 if move.token.startswith(PATCHER) else int(move.token.rstrip("!ft").partition(":")[0])


def verdict(explored: Explored) -> str:
    """Return one line about a race."""
    race, found = explored.race, explored.found
    if found.failure is not None:
        steps = counted(len(found.trace), "step")
        return f"{race.patch.isa.name:8} {race.method:13} FAILS: {found.failure.kind}, after {steps}"
    how = "holds" if found.complete else f"NOT DECIDED: the bound came before {found.waiting:,} states that wait"
    return f"{race.patch.isa.name:8} {race.method:13} {how}: {coverage(explored)}"


def coverage(explored: Explored) -> str:
    """Return the numbers of explored states and steps, as text."""
    model, found = explored.model, explored.found
    scope = "all" if found.complete else "part"
    return (
        f"{counted(found.states, 'state')} and {counted(found.steps, 'step')}, {scope} of them; "
        f"{counted(len(model.fetched), 'instruction')} "
        f"fetched at the patch, in {len(model.between)} of {counted(len(model.script) + 1, 'interval')} of the script"
    )


def lines(explored: Explored) -> Iterator[str]:
    """Yield the failure of a race, step by step."""
    failure = explored.found.failure
    if failure is None:
        return
    yield f"  {failure.kind}: {failure.text}"
    yield from told(explored.found.trace)
    yield f"  --replay '{explored.line}'"


def told(trace: Sequence[Move]) -> Iterator[str]:
    """Yield steps, each with the CPU that takes it."""
    for number, move in enumerate(trace, 1):
        who = lane(move)
        yield f"  {number:3}  {f'CPU {who}' if who else 'patcher':8} {'    ' * who}{move.text}"
        if move.failure is not None:
            yield f"  {'':3}  {'':8} {'    ' * who}{move.failure.kind}: {move.failure.text}"


def as_data(explored: Explored) -> dict[str, Any]:
    """Return a race as plain objects for JSON."""
    race, found, model = explored.race, explored.found, explored.model
    return {
        "isa": race.patch.isa.name,
        "patch": race.patch.name,
        "method": race.method,
        "scenario": race.scenario,
        "cpus": race.cpus,
        "passes": race.passes,
        "states": found.states,
        "steps": found.steps,
        "complete": found.complete,
        "fetched": sorted(code.hex() for _, code in model.fetched),
        "intervals": [len(model.between), len(model.script) + 1],
        "executed": model.processor.executions,
        "failure": None if found.failure is None else found.failure._asdict(),
        "trace": [{"token": move.token, "lane": lane(move), "text": move.text} for move in found.trace],
        "replay": explored.line if found.failure else "",
    }


def player_data(model: Model, trace: Sequence[Move]) -> dict[str, Any]:
    """Return the steps of a trace for the player, with the actions and fetches of each CPU."""
    race = model.race
    world = model.first
    rows = [_row(model, None, world)]
    for move in trace:
        world = move.world or world
        rows.append(_row(model, move, world))
    return {
        "title": f"{race.patch.name} on {race.patch.isa.title}, {race.method}: {race.scenario}",
        "method": f"{race.method}: {race.writing.what} ({race.writing.source})",
        "lanes": ["patcher", *(f"CPU {number}" for number in range(1, race.cpus))],
        "site": race.patch.where(race.patch.site),
        "old": race.patch.old.hex(" "),
        "new": race.patch.new.hex(" "),
        "rows": rows,
    }


def _row(model: Model, move: Move | None, world: World) -> dict[str, Any]:
    site = model.patch.site
    return {
        "lane": lane(move) if move else -1,
        "text": move.text if move else "the beginning",
        "failure": f"{move.failure.kind}: {move.failure.text}" if move and move.failure else "",
        "memory": world.history[-1].data.hex(" "),
        "cpus": [
            {
                "name": "patcher" if cpu.patches else f"CPU {number}",
                "where": _ELSEWHERE.get(cpu.mode) or model.patch.where(cpu.pc),
                "sees": []
                if cpu.mode in {Mode.DONE, Mode.PATCHES}
                else [
                    f"{fetch.code.hex(' ')}  {model.patch.text(fetch.code, site)}"
                    for fetch in model.view.fetches(model.visible(world, cpu), site)
                ],
            }
            for number, cpu in enumerate(world.cpus, 1)
        ],
    }
