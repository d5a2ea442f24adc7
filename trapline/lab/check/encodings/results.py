"""The result of one chunk of encodings.

It consists of cells, which can be added, stored and loaded.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass
from enum import Enum
from typing import NamedTuple

from trapline.lab.check.encodings.decoder import Decoded, Facts
from trapline.lab.check.encodings.space import Chunk


class Doing(Enum):
    """A provider's decision of an instruction."""

    EMULATED = "emulated"
    OUT_OF_LINE = "out of line"
    REFUSED = "refused"
    FAILED = "failed"
    """The rules raised an exception."""


class Ours(NamedTuple):
    """The decision of one provider's table about some encodings."""

    provider: str
    row: str
    doing: Doing
    length: int
    """Length of the instruction; 0 if the row does not depend on it."""
    facts: Facts | None
    """None: the row makes no claim."""
    exemption: int
    """Number of the exemption for the encodings, among those of the ISA; -1 for none."""


class Cell(NamedTuple):
    """Encodings with the same decision in each table, and the same result of capstone."""

    ours: tuple[Ours, ...]
    theirs: Decoded
    encodings: int
    example: bytes
    """The first of them."""


@dataclass(frozen=True, slots=True)
class ChunkResult:
    """A chunk that was classified."""

    chunk: Chunk
    cells: tuple[Cell, ...]

    def to_json(self) -> str:
        """Return the JSON form; data that many cells share are listed once, and numbered."""
        said = list(dict.fromkeys(one for cell in self.cells for one in cell.ours))
        numbers = {one: number for number, one in enumerate(said)}
        return json.dumps({
            "chunk": astuple(self.chunk),
            "said": [
                (one.provider, one.row, one.doing.value, one.length, _value(one.facts), one.exemption) for one in said
            ],
            "cells": [
                ([numbers[one] for one in cell.ours], cell.theirs.name, cell.theirs.length, cell.theirs.facts.value,
                 cell.encodings, cell.example.hex())
                for cell in self.cells
            ],
        })  # fmt: skip

    @classmethod
    def from_json(cls, text: str) -> ChunkResult:
        """Read the result of `to_json`."""
        found = json.loads(text)
        said = [
            Ours(provider, row, Doing(doing), length, None if facts is None else Facts(facts), exemption)
            for provider, row, doing, length, facts, exemption in found["said"]
        ]
        cells = tuple(
            Cell(
                tuple(said[number] for number in ours),
                Decoded(name, length, Facts(facts)),
                count,
                bytes.fromhex(example),
            )
            for ours, name, length, facts, count, example in found["cells"]
        )
        return cls(Chunk(*found["chunk"]), cells)


def _value(facts: Facts | None) -> int | None:
    return None if facts is None else facts.value


def merge(cells: Iterable[Cell]) -> tuple[Cell, ...]:
    """Add up cells with equal keys."""
    merged: dict[tuple[tuple[Ours, ...], Decoded], Cell] = {}
    for cell in cells:
        position = cell.ours, cell.theirs
        there = merged.get(position)
        merged[position] = cell if there is None else there._replace(encodings=there.encodings + cell.encodings)
    return tuple(merged.values())
