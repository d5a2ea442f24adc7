"""Immutable values against `dataclass(frozen=True, slots=True)`, which they replace."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pytest

from emu.support.immutable import immutable

ROOT = Path(__file__).parents[3]
# What a trace runs through.  What the Python API gives away (trapline/api, trapline/lab) is frozen at run time.
TRACING = (
    "emu",
    "providers",
    *(f"trapline/{name}" for name in ("consumer", "d", "dof", "framework", "machine", "types")),
)


def _classes(make: Callable[[type], type]) -> list[Any]:
    @make
    class Empty:
        """Without fields."""

    @make
    class One:
        name: str

    @make
    class Derived(One):
        count: int = 2
        note: str = field(default="", compare=False)
        secret: list[int] = field(default_factory=list, repr=False, compare=False)
        only: bool = field(default=False, kw_only=True)

    @make
    class Own:
        name: str

        def __eq__(self, other: object) -> bool:
            return isinstance(other, Own) and self.name.lower() == other.name.lower()

        def __hash__(self) -> int:
            return hash(self.name.lower())

        def __repr__(self) -> str:
            return f"<{self.name}>"

    return [Empty, One, Derived, Own]


def _objects(classes: list[Any]) -> list[Any]:
    empty, one, derived, own = classes
    return [
        empty(), empty(), one("a"), one("a"), one("b"), derived("a"), derived("a", 2, "other", [3]),
        derived("a", 3), derived("a", only=True), replace(derived("b", 5, "n"), name="a"), own("x"), own("X"), own("y"),
    ]  # fmt: skip


def test_they_compare_hash_and_print_as_frozen_dataclasses_do():
    ours, theirs = (_objects(_classes(make)) for make in (immutable, dataclass(frozen=True, slots=True)))
    assert [repr(one) for one in ours] == [repr(one) for one in theirs]
    assert [asdict(one) for one in ours] == [asdict(one) for one in theirs]
    assert [type(one).__match_args__ for one in ours] == [type(one).__match_args__ for one in theirs]
    equal = [[first == second for second in ours] for first in ours]
    assert equal == [[first == second for second in theirs] for first in theirs]
    assert any(line.count(True) > 1 for line in equal)
    for row, first in zip(equal, ours, strict=True):
        for same, second in zip(row, ours, strict=True):
            assert hash(first) == hash(second) or not same
    assert ours[0] != object()


@immutable
class _Pair:
    left: int
    right: tuple[int, ...]


def test_they_are_copied_and_pickled_and_matched():
    pair = _Pair(1, (2, 3))
    assert copy.copy(pair) == copy.deepcopy(pair) == pickle.loads(pickle.dumps(pair)) == pair  # noqa: S301  its own
    match pair:
        case _Pair(left, right):
            assert (left, right) == (1, (2, 3))
    assert [one.name for one in fields(pair)] == ["left", "right"]
    with pytest.raises(AttributeError):
        pair.third = 3  # type: ignore[attr-defined]


def test_what_a_trace_runs_through_defines_its_values_this_way():
    dear = [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for folder in TRACING
        for path in (ROOT / folder).rglob("*.py")
        for found in re.finditer(r"@dataclass\((?=.*frozen=True)(?=.*slots=True)(?!.*eq=False).*\)", path.read_text())
    ]
    assert dear == []
