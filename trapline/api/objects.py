"""`trapline.check(object=...)`: the user's own compiled code, compared with the package's rules."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from emu.elf.link.object_file import ObjectFile
from emu.guest.linux_kernel.files.kernel_file import open_image
from providers.fidelity import Fidelity
from trapline.api.errors import TraplineError
from trapline.commands.object import ERRORS
from trapline.lab.displace.bench import DisplaceError, isa_of
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import Glue
from trapline.lab.objects.glues import find
from trapline.lab.objects.request import Request
from trapline.support.targets import find_file

Paths = str | Path | Sequence[str | Path]


def check_object(
    objects: Paths, glue: str | type[Glue] | None, program: str | Path | None, *, isa: str | None, function: str | None,
    states: int | None, fidelity: str, sample: int | None, fuzz: int, root: str | Path | None,
) -> ObjectReport:  # fmt: skip
    """Return what a check of objects finds.  Raises `TraplineError`."""
    if glue is None:
        raise TraplineError("object needs glue: a name, 'FILE.py:CLASS', or a class")
    try:
        machine = None if isa is None else isa_of(isa)
        words = objects.split(",") if isinstance(objects, str) else [objects] if isinstance(objects, Path) else objects
        paths = [find_file(str(word), machine) for word in words]
        if not paths:
            raise TraplineError("object names no file")
        machine = machine or ObjectFile(paths[0]).isa
        where = Path(root) if root else None
        image = None if program is None else open_image(find_file(str(program), machine, where), machine)
        request = Request(
            image, function, Fidelity(fidelity), sample=sample or Request.sample, fuzz=fuzz,
            states=Request.states if states is None else states,
        )  # fmt: skip
        chosen = find(glue) if isinstance(glue, str) else glue
        return check_objects(paths, chosen, request, machine)
    except (*ERRORS, DisplaceError) as error:
        raise TraplineError(str(error)) from None
