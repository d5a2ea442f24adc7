"""One call for a check of the user's objects, for the command and for tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emu.elf.image import SegmentFlag
from emu.elf.link.object_file import ObjectFile
from emu.isa import Isa
from trapline.lab.objects.coverage import accesses, coverage
from trapline.lab.objects.decoder.word_sweep import loop_object
from trapline.lab.objects.findings import ObjectReport
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
    room = sum(one.memsz + 0x1000 for one in segments if one.flags & SegmentFlag.EXECUTE)
    if request.sweep is not None and not glue.sweeps:
        raise RequestError(f"--sweep asks a decoder of single instructions; {glue.__name__} calls none")
    isa = isa or (image.isa if image is not None else None)
    checked = checked and request.sweep is None
    beside = () if request.sweep is None else (loop_object(isa or ObjectFile(paths[0]).isa),)
    code = UserCode(paths, glue, isa, room=room, checked=checked, beside=beside)
    report = ObjectReport(code.name, code.isa.name, glue.__name__, str(image.path) if image is not None else "")
    code.glue.examine(request, report)
    report.accesses.extend(accesses(code))
    report.coverage.extend(coverage(code))
    if not checked:
        why = "--no-memory" if request.sweep is None else "a sweep"
        report.omitted.append(f"accesses to memory and the lines that ran were not recorded ({why})")
    return report
