"""Whether an instruction is between a load-exclusive and its store-exclusive.

A trap there loses the reservation, so the store fails, and the loop around it never ends.  What is
between is decided by control flow: a compiler may put the store far from the load, behind a return,
and the way out of the loop may follow the load.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import Final

from emu.displaced.decision import Code

# Bytes of code before and behind an instruction that are looked at.
REACH: Final = 4096
# Instructions from a load to its store; RISC-V promises success for 16 (unprivileged specification, 14.3).
_LONGEST: Final = 32
_REMEMBERED: Final = 256
# Bytes of the longest instruction of these ISAs.
_WORD: Final = 4


class Kind(Enum):
    """What an instruction does to a reservation."""

    LOAD = auto()
    STORE = auto()
    OTHER = auto()


# Code, offset -> what the instruction there is, and the offsets of those that may follow it.
Read = Callable[[bytes, int], tuple[Kind, Sequence[int]]]


def is_between(code: Code, loads: Callable[[bytes], Iterator[int]], read: Read) -> bool:
    """Return whether an instruction is on a path from a load-exclusive to its store.

    `loads` yields the offsets of loads in some code.  A path that leaves the known code by a branch
    or at its end may lead to the store; one by a jump is a call in place of a return, and does not.
    """
    body = code.before + code.data + code.after
    return len(code.before) in _between(body, tuple(loads(body)), read)


@lru_cache(_REMEMBERED)
def _between(body: bytes, loads: tuple[int, ...], read: Read) -> frozenset[int]:
    found: set[int] = set()
    for load in loads:
        found |= _on_paths(body, load, read)
    return frozenset(found)


def _on_paths(body: bytes, load: int, read: Read) -> set[int]:
    """Return the offsets of what is on the paths from one load to its stores."""
    before: dict[int, list[int]] = {}
    ends: list[int] = []
    level, seen = [load], {load}
    for _ in range(_LONGEST):
        following = []
        for at in level:
            ways = read(body, at)[1]
            for after in ways:
                if len(ways) == 1 and not 0 <= after < len(body) and not 0 < after - at <= _WORD:
                    continue
                before.setdefault(after, []).append(at)
                if after in seen:
                    continue
                seen.add(after)
                known = 0 <= after < len(body)
                kind = read(body, after)[0] if known else Kind.STORE
                if kind is Kind.STORE:
                    ends.append(after)
                elif kind is Kind.OTHER:
                    following.append(after)
        level = following
    paths: set[int] = set()
    while ends:
        for at in before.get(ends.pop(), ()):
            if at != load and at not in paths:
                paths.add(at)
                ends.append(at)
    return paths
