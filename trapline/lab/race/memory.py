"""The code as the CPUs see it: its successive contents, and the results of a fetch.

A content gets visible to fetches store by store.  A CPU may fetch each block of bytes from any
content since its last synchronization, older or newer at each fetch (the instruction cache that
holds sets of values, of Simner and others, ESOP 2020; it is the weakest that the manuals permit).
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import NamedTuple

from trapline.lab.race.patch import Patch

_LONGEST = 15


class Content(NamedTuple):
    """The patched bytes after one store."""

    page: int
    """The number of the page that holds them: a fetch does not mix the bytes of two pages."""
    data: bytes


History = tuple[Content, ...]


def canonical(history: History, marks: frozenset[int], cuts: tuple[int, ...]) -> tuple[History, dict[int, int]]:
    """Return an equivalent history in a normal form, and the new positions of the marks.

    `marks`: the contents from which a CPU may still fetch; `cuts`: where the blocks of a fetch
    begin.  Contents before all marks are dropped.  Those between two marks are an unordered set,
    and of each block only its values count.
    """
    found: list[Content] = []
    positions: dict[int, int] = {}
    begins = sorted(marks | {len(history) - 1})
    for start, end in zip(begins, [*begins[1:], len(history)], strict=True):
        positions[start] = len(found)
        first, rest = history[start], history[start + 1 : end]
        found.append(first)
        for page in sorted({content.page for content in rest}):
            values = [
                sorted({content.data[a:b] for content in rest if content.page == page} - {first.data[a:b]})
                if page == first.page
                else sorted({content.data[a:b] for content in rest if content.page == page})
                for a, b in pairwise(cuts)
            ]
            for number in range(max(map(len, values))):
                # A block with fewer values repeats its last one, or the first content's.
                parts = [
                    block[min(number, len(block) - 1)] if block else first.data[a:b]
                    for block, (a, b) in zip(values, pairwise(cuts), strict=True)
                ]
                found.append(Content(page, b"".join(parts)))
    return tuple(found), positions


class Fetch(NamedTuple):
    """One possible result of a fetch."""

    code: bytes
    """An instruction."""
    settled: bool
    """Whether the architecture defines its execution."""


class CodeView:
    """The possible results of a fetch at an address, for given contents."""

    def __init__(self, patch: Patch) -> None:
        self._patch = patch
        self._rules = patch.isa.fetching
        self._known: dict[tuple[History, int], tuple[Fetch, ...]] = {}

    def fetches(self, visible: History, pc: int) -> tuple[Fetch, ...]:
        """Return the instructions that may be fetched at a pc, in a fixed order."""
        key = (visible, pc)
        if key not in self._known:
            self._known[key] = self._find(visible, pc)
        return self._known[key]

    def _find(self, visible: History, pc: int) -> tuple[Fetch, ...]:
        found: dict[bytes, bool] = {}
        for page in dict.fromkeys(content.page for content in visible):
            contents = [self._image(content.data, pc) for content in visible if content.page == page]
            for code, settled in self._mixed(contents, pc):
                size = self._patch.isa.instruction_length(code) or self._patch.isa.instruction_alignment
                # Blocks behind the instruction's end do not count.
                found[code[:size]] = found.get(code[:size], True) and settled
        return tuple(Fetch(code, settled) for code, settled in found.items())

    def _image(self, data: bytes, pc: int) -> bytes:
        patch = self._patch
        code = patch.code[: patch.offset] + data + patch.code[patch.offset + len(data) :]
        at = pc - patch.address
        return code[at : at + _LONGEST]

    def _mixed(self, contents: list[bytes], pc: int) -> list[tuple[bytes, bool]]:
        """Return all combinations of the contents' blocks, and whether each is settled."""
        unit, size = self._rules.unit, len(contents[0])
        cuts = [0, *(at for at in range(1, size) if (pc + at) % unit == 0), size]
        blocks = [list(dict.fromkeys(one[a:b] for one in contents)) for a, b in pairwise(cuts)]
        allowed = self._rules.concurrent
        settled = allowed is None or len(blocks[0]) == 1 or all(map(allowed, blocks[0]))
        return [(b"".join(parts), settled) for parts in product(*blocks)]
