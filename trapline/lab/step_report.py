"""The stages of a firing, as text for a terminal and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.text import Text

from trapline.lab.stages import Stage
from trapline.lab.step import Stepped

_PER_LINE = 4


def as_json(stepped: Stepped) -> str:
    """Return the stages as a JSON object; numbers are decimal."""
    return json.dumps(asdict(stepped), indent=2, default=str)


def text(stepped: Stepped) -> Iterator[Text]:
    """Yield the lines of the numbered stages."""
    yield Text.assemble(
        (stepped.probe, "bold"), f" on {stepped.isa}, {stepped.trap_path} trap path", no_wrap=True, overflow="ignore"
    )
    for number, stage in enumerate(stepped.stages, start=1):
        yield Text()
        yield Text.assemble((f"{number}. {stage.title}", "bold cyan"), _cost(stage))
        yield Text(f"   {stage.text}")
        yield from _facts(stage)
        for when, lines in stage.code.items():
            yield Text.assemble("   ", (when, "green"))
            yield from (Text(f"     {line}") for line in lines)
        for name, (before, after) in stage.registers.items():
            yield Text.assemble("   ", (f"{name:>8}", "green"), f"  {before:#018x} -> ", (f"{after:#018x}", "yellow"))
        for change in stage.memory:
            yield Text.assemble(
                "   ",
                (f"[{change.address:#x}]", "green"),
                f"  {change.before:#x} -> ",
                (f"{change.after:#x}", "yellow"),
            )


def _cost(stage: Stage) -> str:
    if not stage.instructions:
        return ""
    return f"  ({stage.instructions} guest instruction{'' if stage.instructions == 1 else 's'})"


def _facts(stage: Stage) -> Iterator[Text]:
    if len(stage.facts) > 2 * _PER_LINE:  # registers: several to a line
        cells = [f"{name:>7} {_value(value)}" for name, value in stage.facts.items()]
        for start in range(0, len(cells), _PER_LINE):
            yield Text("   " + "  ".join(cell.ljust(26) for cell in cells[start : start + _PER_LINE]).rstrip())
        return
    width = max(map(len, stage.facts), default=0)
    for name, value in stage.facts.items():
        yield Text.assemble("   ", (name.ljust(width), "green"), f"  {_value(value)}")


def _value(value: Any) -> str:
    return f"{value:#x}" if isinstance(value, int) else str(value)
