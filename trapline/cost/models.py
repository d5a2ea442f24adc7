"""The prices of hits on real machines: see `models.toml`, which names the sources.

The prices are those of Linux, whose figures are published; DTrace's handlers are about as long.
The difference between a prediction and a published row that was not used for the prices is the
error of the model, and is given with each prediction.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from emu.support.did_you_mean import did_you_mean
from trapline.cost.hit_work import Events


class ModelError(ValueError):
    """No model has the name, or the request does not fit the model; the message says which."""


class Check(NamedTuple):
    """A published figure that the prices were not taken from."""

    what: str
    events: Events
    measured: float
    """The published time in nanoseconds."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """A machine and a kernel whose probes were measured."""

    name: str
    title: str
    isas: tuple[str, ...]
    mechanism: str
    """The measured mechanism: `uprobe` or `kprobe`."""
    source: str
    derivation: str
    trap: float
    """The nanoseconds of each event, as `Events` counts them."""
    step: float
    returns: float
    checks: tuple[Check, ...]
    hz: float | None = None
    """The frequency of its clock in hertz; None: it was not published."""
    jump: float | None = None
    """The nanoseconds of a jump; None: that was not measured."""
    margin: float = 0.0
    """The assumed relative error of a model that has no checks."""
    scale: float = 1.0
    """The factor by which all times are longer, for another clock."""

    @property
    def estimated(self) -> bool:
        """Whether its prices are another machine's, changed by an assumption."""
        return bool(self.margin)

    def published(self, events: Events) -> float:
        """Return the cost of one hit on the measured machine, in nanoseconds."""
        jumps = events.jumps * self.jump if self.jump is not None else 0.0
        return events.traps * self.trap + events.steps * self.step + events.returns * self.returns + jumps

    def knows(self, events: Events) -> bool:
        """Return whether it has a price for each of these events, of which there are some."""
        return bool(events.exceptions or (events.jumps and self.jump is not None))

    def nanoseconds(self, events: Events) -> float:
        """Return the cost of one hit with the chosen clock, in nanoseconds."""
        return self.published(events) * self.scale

    def price(self, events: Events) -> str:
        """Return the cost of one hit with the chosen clock, as text."""
        about = f" +-{self.margin:.0%} (estimated)" if self.estimated else ""
        return f"{self.nanoseconds(events):.0f} ns {self.name}{about}"

    @property
    def error(self) -> float:
        """The largest relative error of its checks; 0.03 is 3 %.  Of an estimate: its margin."""
        return max(
            (abs(self.published(check.events) / check.measured - 1) for check in self.checks), default=self.margin
        )

    @property
    def clock(self) -> str:
        """Return the chosen clock, as text; "" if it is the machine's own."""
        return "" if self.hz is None or self.scale == 1 else f", at {self.hz / self.scale / 1e9:g} GHz here"

    def at(self, hz: float) -> CostModel:
        """Return the machine with another clock.  Raises `ModelError` if its own is not known."""
        if self.hz is None:
            raise ModelError(f"--hz: the clock of '{self.name}' was not published, so its times cannot be scaled")
        if not 0 < hz < math.inf:
            raise ModelError(f"--hz {hz:g}: a clock has more than 0 hertz")
        return replace(self, scale=self.hz / hz)


@cache
def models() -> Mapping[str, CostModel]:
    """Return all models by name."""
    text = files("trapline.cost").joinpath("models.toml").read_text(encoding="utf-8")
    found: dict[str, CostModel] = {}
    for name, row in tomllib.loads(text).items():
        found[name] = _estimate(name, row, found[row["of"]]) if "of" in row else _machine(name, row)
    return found


def _estimate(name: str, row: Mapping[str, Any], base: CostModel) -> CostModel:
    """Return a model for a machine without published figures: as many cycles as another takes."""
    factor = row["cycles"] * row["of_hz"] / row["hz"]
    return replace(
        base,
        name=name,
        title=row["title"],
        isas=tuple(row["isas"]),
        source=f"none; estimated from {base.name} ({base.source})",
        derivation=row["from"],
        trap=round(base.trap * factor),
        step=round(base.step * factor),
        returns=round(base.returns * factor),
        checks=(),
        hz=row["hz"],
        margin=row["margin"],
    )


def _machine(name: str, row: Mapping[str, Any]) -> CostModel:
    checks = tuple(Check(what, Events(*events), ns) for what, *events, ns in row["checks"])
    prices = (row["trap"], row["step"], row["return"])
    return CostModel(
        name,
        row["title"],
        tuple(row["isas"]),
        row["mechanism"],
        row["source"],
        row["from"],
        *prices,
        checks,
        row.get("hz"),
        row.get("jump"),
    )


def of_isa(found: Iterable[CostModel], isa: str) -> list[CostModel]:
    """Return the models of machines that run an ISA."""
    return [model for model in found if isa in model.isas]


def chosen(names: Sequence[str], hz: float | None = None) -> list[CostModel]:
    """Return models by name; none: all that were made from figures.  Raises `ModelError`."""
    known = models()
    found = []
    for name in names or [name for name, model in known.items() if not model.estimated]:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ModelError(
                f"no model '{name}'{hint}: there are {', '.join(known)} (others have no published figures)"
            )
        found.append(known[name] if hz is None else known[name].at(hz))
    return found
