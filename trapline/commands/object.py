"""`trapline object`, and the part of `trapline check` that examines the user's own objects."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import click

from emu.elf.file import ElfError
from emu.elf.link.object_file import ObjectFile
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.isa import DEFAULT_ISA, ISAS
from emu.isa.disassembly import Syntax
from emu.support import disk_cache
from providers.fidelity import Fidelity
from trapline.commands.completion import offering
from trapline.commands.shared import CheckFailure
from trapline.lab.objects import report as reports
from trapline.lab.objects.build import BuildError, build
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glues import GLUES, GlueError, find
from trapline.lab.objects.request import Bar, Request, RequestError
from trapline.lab.objects.structures import LayoutError
from trapline.lab.objects.user_code import ObjectError
from trapline.support.output_files import OutputError
from trapline.support.own_files import TargetError
from trapline.support.targets import find_file

ERRORS: Final = (
    BuildError, ElfError, GlueError, LayoutError, ObjectError, RequestError, TargetError, OutputError
)  # fmt: skip


@click.group("object")
def object_command() -> None:
    """Compile a kernel's probe code for `trapline check --object`."""


@object_command.command("build")
@click.option(
    "--glue",
    required=True,
    metavar="NAME",
    shell_complete=offering(lambda: GLUES),
    help=f"The glue: {', '.join(GLUES)}, or FILE.py:CLASS.",
)
@click.option(
    "--sources",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The kernel's source tree, or a folder with its files.",
)
@click.option("--isa", type=click.Choice(list(ISAS)), default=DEFAULT_ISA.name, show_default=True)
@click.option("--out", type=click.Path(file_okay=False, path_type=Path), default=Path(), help="Default: this folder.")
@click.option("--cc", default="", metavar="COMMAND", help="The compiler; default: a gcc for the ISA, else clang.")
def build_command(glue: str, sources: Path, isa: str, out: Path, cc: str) -> None:
    """Compile the sources that a glue is for, with the package's own headers.

    The objects are written to the folder --out, and the command line for `trapline check` is
    printed.
    """
    try:
        recipe = find(glue).recipe
        if recipe is None:
            raise BuildError(f"--glue {glue}: this glue has no recipe; compile the object yourself (-c -g)")
        built = list(build(recipe, ISAS[isa], sources, out, cc.split()))
    except ERRORS as error:
        raise CheckFailure(str(error)) from None
    for one in built:
        click.echo(f"{one.object}: compiled from {one.source}")
    click.echo(f"trapline check TARGET --object {','.join(str(one.object) for one in built)} --glue {glue} --isa {isa}")


def examine(options: Mapping[str, Any], bar: AbstractContextManager[Bar]) -> ObjectReport:
    """Examine objects, and write the reports; `bar` shows the progress of a sweep.

    `options` are those of `trapline check`, by their names; from Python, `objects` may be a list,
    and `glue` a class.  Raises `CheckFailure`, and KeyboardInterrupt that says what continues.
    """
    name, program, objects = options["glue"], options["program"], options["objects"]
    isa = ISAS[options["isa"]] if options["isa"] else None
    sweep = None
    try:
        if name is None:
            raise GlueError(f"--object needs --glue: {', '.join(GLUES)}, or FILE.py:CLASS")
        for file in options["reports"]:
            reports.FORMS.writer(file)
        glue = find(name) if isinstance(name, str) else name
        paths = [find_file(word, isa) for word in (objects.split(",") if isinstance(objects, str) else objects)]
        isa = isa or ObjectFile(paths[0]).isa
        sweep = _sweep(options["kept"], options)
        request = Request(
            None if program is None else open_image(find_file(program, isa, options["root"]), isa),
            options["function"],
            Fidelity(options["fidelity"]),
            Syntax(options["syntax"]),
            options["sample"] or (Request.sample if sweep is None else sys.maxsize),
            options["first"],
            options["fuzz"],
            options["states"] or Request.states,
            sweep,
            options["bound"],
            _given(options),
        )
        with bar as shown:
            found = check_objects(paths, glue, replace(request, bar=shown), isa, checked=options["memory"])
        for file in options["reports"]:
            reports.FORMS.write(found, file)
    except ERRORS as error:
        raise CheckFailure(str(error)) from None
    except KeyboardInterrupt as end:
        end.args = () if sweep is None else ("the same command continues where this one stopped",)
        raise
    return found


def _given(options: Mapping[str, Any]) -> bytes | None:
    """Return the bytes that are tried alone, None if there are none.  Raises `RequestError`."""
    text = options["given"]
    if text is None:
        return None
    for name in ("first", "fuzz", "sample", "sweep"):
        if options[name]:
            raise RequestError(f"--{name} has no effect with --bytes, which tries one instruction or function")
    try:
        found = bytes.fromhex(text)
    except ValueError:
        found = b""
    if not found:
        raise RequestError(f"--bytes '{text}': give bytes in hexadecimal digits, such as 55")
    return found


def _sweep(kept: str | None, options: Mapping[str, Any]) -> Path | None:
    """Return the file of a sweep, or the folder for one; None: no sweep.  Raises `RequestError`."""
    if not options["sweep"]:
        if kept is not None:
            raise RequestError("--results keeps a --sweep: without it nothing is kept")
        if options["bound"] is not None:
            raise RequestError("--bound has no effect without --sweep")
        return None
    for name in ("program", "first", "fuzz"):
        if options[name]:
            word = "PROGRAM" if name == "program" else f"--{name}"
            raise RequestError(f"{word} has no effect with --sweep, which decides about all encodings")
    if kept is not None:
        return Path(kept)
    found = disk_cache.folder()
    if found is None:
        raise RequestError(f"no folder for the sweep's results ({disk_cache.why_none()}): name a file, --results FILE")
    return found
