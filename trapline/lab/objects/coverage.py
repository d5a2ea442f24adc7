"""The source lines of the user's objects that ran, by the line tables of their DWARF."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping

from trapline.lab.objects.findings import BadAccess, Coverage
from trapline.lab.objects.user_code import UserCode


def coverage(code: UserCode) -> Iterator[Coverage]:
    """Yield the coverage of each source file; nothing, if no shadow memory watched the code."""
    if code.shadow is None:
        return
    every: dict[str, set[int]] = defaultdict(set)
    ran: set[tuple[str, int]] = set()
    covered = _joined(code.shadow.covered)
    starts = [start for start, _ in covered]
    for start, end, line in code.image.source_lines.stretches():
        if line is None:
            continue
        every[line.file].add(line.line)
        place = bisect_left(starts, end) - 1  # the last one that begins before the end
        if place >= 0 and covered[place][1] > start:
            ran.add((line.file, line.line))
    for file, lines in sorted(every.items()):
        missed = sorted(number for number in lines if (file, number) not in ran)
        yield Coverage(file, len(lines), missed)


def _joined(blocks: Mapping[int, int]) -> list[tuple[int, int]]:
    """Return the ranges of addresses that blocks cover, without overlaps."""
    found: list[tuple[int, int]] = []
    for start, size in sorted(blocks.items()):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], start + size)
        else:
            found.append((start, start + size))
    return found


def accesses(code: UserCode) -> Iterator[BadAccess]:
    """Yield the bad accesses, joined by source line."""
    if code.shadow is None:
        return
    joined: dict[tuple[str, str], BadAccess] = {}
    for mistake in code.shadow.mistakes.values():
        where = code.where(mistake.pc)
        key = mistake.what, where
        known = joined.get(key)
        joined[key] = BadAccess(
            mistake.what, where, mistake.size, known.subject if known else mistake.subject,
            mistake.count + (known.count if known else 0),
        )  # fmt: skip
    yield from joined.values()
