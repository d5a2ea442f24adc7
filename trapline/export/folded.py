"""Folded stacks: a line for each stack, its frames from the outermost on, and its weight.

Source: Brendan Gregg's FlameGraph, stackcollapse.pl.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from typing import Final

from trapline.export.events import Count, ExportError, Recording, Stack, Value, slices

# The end of a frame's name whose pc is not the function's first instruction.
_OFFSET: Final = re.compile(r"\+0x[0-9a-f]+$")

# Frames, the outermost first -> weight.
Folded = dict[tuple[str, ...], int]


def function(frame: str) -> str:
    """Return a frame's name without the offset in the function: the same function is one frame."""
    return _OFFSET.sub("", frame)


def _text(value: Value) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _frames(keys: tuple[Value, ...]) -> tuple[str, ...]:
    """Return the frames of an aggregation's keys: those beside the stacks are the outermost."""
    stacks = [function(frame) for key in keys if isinstance(key, Stack) for frame in reversed(key)]
    return (*(_text(key) for key in keys if not isinstance(key, Stack)), *stacks)


def _weight(count: Count) -> int:
    return sum(count.value.values()) if isinstance(count.value, Mapping) else count.value


def weightless(recording: Recording) -> int:
    """Return how many stacks of aggregations are left out: their weight is not above 0."""
    return sum(_weight(one) <= 0 for one in recording.counts if any(isinstance(key, Stack) for key in one.keys))


def fold(recording: Recording) -> Folded:
    """Return the stacks of a recording and their weights.

    They are those of aggregations that have a stack among their keys; without any, those that
    events recorded, each of weight 1; without any, those of entries and returns, weighted by the
    nanoseconds that the innermost function itself took.  Those of weight 0 or less are left out.
    Raises `ExportError` if there are none.
    """
    found: Counter[tuple[str, ...]] = Counter()
    for count in recording.counts:
        if any(isinstance(key, Stack) for key in count.keys):
            found[_frames(count.keys)] += _weight(count)
    for event in recording.events if not found else ():
        if event.stack:
            found[(event.process, *map(function, reversed(event.stack)))] += 1
    for one in slices(recording) if not found else ():
        root = (one.entry.process,)
        took = one.end - one.entry.time
        found[root + one.path] += took
        if one.depth:
            found[root + one.path[:-1]] -= took
    weighed = Counter({frames: weight for frames, weight in found.items() if weight > 0 and frames})
    if found and not weighed:
        raise ExportError("no stack has a weight above 0: a negative or zero sum has no width")
    if not weighed:
        raise ExportError("no stacks: record stack() or ustack(), or probe entries and returns of functions")
    return dict(weighed)


def lines(recording: Recording) -> str:
    """Return the file."""
    return write(fold(recording))


def write(folded: Folded) -> str:
    """Return folded stacks as text, in the order of their frames."""
    return "".join(
        ";".join(frame.replace(";", ":") for frame in frames) + f" {weight}\n"
        for frames, weight in sorted(folded.items())
    )


def read(text: str, name: str) -> Folded:
    """Read folded stacks.  `name` is the file's, for errors.  Raises `ExportError`."""
    found: Counter[tuple[str, ...]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        stack, _, weight = line.rpartition(" ")
        if not stack or not weight.isascii() or not weight.isdigit():
            raise ExportError(f"{name}:{number}: not a folded stack: frames between semicolons, a space, a number")
        found[tuple(stack.split(";"))] += int(weight)
    if not found:
        raise ExportError(f"{name}: no stacks")
    return dict(found)


def speedscope(recording: Recording) -> str:
    """Return a file of speedscope: one profile of samples.

    Source: https://www.speedscope.app/file-format-schema.json.
    """
    folded = fold(recording)
    numbers: dict[str, int] = {}
    samples = [[numbers.setdefault(frame, len(numbers)) for frame in frames] for frames in folded]
    weights = list(folded.values())
    return (
        json.dumps(
            {
                "$schema": "https://www.speedscope.app/file-format-schema.json",
                "exporter": "trapline",
                "shared": {"frames": [{"name": name} for name in numbers]},
                "profiles": [
                    {
                        "type": "sampled",
                        "name": "trapline",
                        "unit": "none",
                        "startValue": 0,
                        "endValue": sum(weights),
                        "samples": samples,
                        "weights": weights,
                    }
                ],
            },
            ensure_ascii=False,
        )
        + "\n"
    )
