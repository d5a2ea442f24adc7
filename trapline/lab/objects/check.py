"""One call for a check of the user's objects, for the command and for tests.

Its report has the source lines that ran, by the line tables of their DWARF, and the bad accesses.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from emu.elf.image import SegmentFlag
from emu.elf.link.object_file import ObjectFile
from emu.isa import Isa
from trapline.lab.objects.decoder.word_sweep import loop_object
from trapline.lab.objects.findings import BadAccess, Coverage, ObjectReport
from trapline.lab.objects.glue import Glue
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.user_code import UserCode


def check_objects(
    paths: Sequence[str | Path], glue: type[Glue], request: Request, isa: Isa | None = None, *, checked: bool = True
) -> ObjectReport:
    """Link, load and examine the objects.  `checked`: whether shadow memory watches each access.

    Raises `trapline.lab.objects.user_code.ObjectError`, `emu.elf.file.ElfError`, `LayoutError`
    (debugging information lacks a structure) and `RequestError`.
    """
    image = request.image
    segments = image.segments if image is not None else ()
    space = sum(one.memsz + 0x1000 for one in segments if one.flags & SegmentFlag.EXECUTE)
    if request.sweep is not None and not glue.sweeps:
        raise RequestError(f"--sweep asks a decoder of single instructions; {glue.__name__} calls none")
    isa = isa or (image.isa if image is not None else None)
    checked = checked and request.sweep is None
    beside = () if request.sweep is None else (loop_object(isa or ObjectFile(paths[0]).isa),)
    code = UserCode(paths, glue, isa, room=space, checked=checked, beside=beside)
    report = ObjectReport(code.name, code.isa.name, glue.__name__, str(image.path) if image is not None else "")
    code.glue.examine(request, report)
    report.accesses.extend(accesses(code))
    report.coverage.extend(coverage(code))
    if not checked:
        why = "--no-memory" if request.sweep is None else "a sweep"
        report.omitted.append(f"accesses to memory and the lines that ran were not recorded ({why})")
    return report


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
        index = bisect_left(starts, end) - 1  # the last one that begins before the end
        if index >= 0 and covered[index][1] > start:
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
