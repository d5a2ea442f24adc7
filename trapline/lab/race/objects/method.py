"""A method of patching that is the user's own compiled code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

from emu.elf.file import ElfError
from emu.elf.link.object_file import ObjectFile
from emu.guest.function import FunctionFaultError
from emu.isa.base import Isa
from trapline.lab.objects.glue import Glue, GluePanicError
from trapline.lab.objects.glues import GlueError, find
from trapline.lab.objects.structures import LayoutError
from trapline.lab.objects.user_code import ObjectError, UserCode
from trapline.lab.race.methods import Method, Own
from trapline.lab.race.objects.handler import ObjectHandler
from trapline.lab.race.objects.recorder import Recorder, operations
from trapline.lab.race.objects.text_poke import CPUS, FbtPokeGlue, TextPokeGlue
from trapline.lab.race.operations import Divert, Operation, Store
from trapline.lab.race.patch import Kind, NoPortError, Patch, RaceError
from trapline.support.own_files import TargetError
from trapline.support.targets import find_file

GLUES: Final[Mapping[str, type[Glue]]] = {"text-poke": TextPokeGlue, "fbt": FbtPokeGlue}
_ERRORS: Final = (ElfError, FunctionFaultError, GlueError, GluePanicError, LayoutError, ObjectError, TargetError)


def glue_of(name: str) -> type[TextPokeGlue]:
    """Return the glue of a name, or of FILE.py:CLASS.  Raises `RaceError`."""
    try:
        found = find(name, GLUES)
    except GlueError as error:
        raise RaceError(str(error)) from None
    if not issubclass(found, TextPokeGlue):
        raise RaceError(f"{name}: not derived from {TextPokeGlue.__module__}.{TextPokeGlue.__name__}")
    return found


def files_of(text: str, isa: Isa) -> list[Path]:
    """Return the objects of FILE[,FILE...] for an ISA.

    Raises `RaceError`, and `NoPortError` if they are for another ISA.
    """
    try:
        paths = [find_file(word, isa) for word in text.split(",")]
        other = next((one for one in map(ObjectFile, paths) if one.isa is not isa), None)
    except _ERRORS as error:
        raise RaceError(str(error)) from None
    if other is not None:
        raise NoPortError(f"{other.name} is for {other.isa.name}, not for {isa.name}")
    return paths


def own_method(patch: Patch, objects: str, glue: str = "text-poke", entry: str = "", handler: str = "") -> Own:
    """Return the method of the objects FILE[,FILE...] for a patch.

    `entry`, `handler`: the functions that patch and that handle breakpoints, if there are several.

    Raises `RaceError`, and `NoPortError` if they are for another ISA.
    """
    made = glue_of(glue)
    paths = files_of(objects, patch.isa)
    try:
        code = UserCode(paths, made, patch.isa, room=len(patch.code), checked=False, cpus=CPUS)
        function, named = code.glue.entry(entry), code.glue.trap_handler(handler)
        code.glue.recorder = Recorder(code, patch)
        handling = ObjectHandler(code, patch, named) if named else None
    except _ERRORS as error:
        raise RaceError(str(error)) from None
    writer = _Writer(code, function, handles=handling is not None)
    method = Method(writer.write, f"{function} of {code.name}", made.source, framework=made.framework)
    words = {"object": objects, "glue": glue} | ({"entry": entry} if entry else {})
    words |= {"handler": handler} if handler else {}
    return Own(
        function,
        method,
        " ".join(f"{name}={quote(value, safe='/:,')}" for name, value in words.items()),
        handling,
    )


def replayed(patch: Patch, words: Mapping[str, str]) -> Own | None:
    """Return the method that the words of a replay's line name; None if they name no object.

    Raises `RaceError`.
    """
    found = {name: unquote(words[name]) for name in ("object", "glue", "entry", "handler") if name in words}
    return own_method(patch, found.pop("object"), **found) if "object" in found else None


class _Writer:
    """Lets the objects write, and returns the operations."""

    def __init__(self, code: UserCode, entry: str, *, handles: bool) -> None:
        self._code = code
        self._handles = handles
        self._entry = entry

    def write(self, patch: Patch, address: int, data: bytes) -> list[Operation]:
        """Return what the objects do to write bytes over others.  Raises `RaceError`."""
        recorder: Recorder = self._code.glue.recorder
        recorder.set(patch.old if data == patch.new else patch.new)
        try:
            with recorder:
                self._code.glue.write(self._entry, patch, data)
        except FunctionFaultError as error:
            raise RaceError(f"{self._code.name}: {error}, at {self._code.where(error.pc)}") from None
        except _ERRORS as error:
            raise RaceError(f"{self._code.name}: {error}") from None
        done = list(operations(patch, [event for _, event in recorder.events]))
        if not any(isinstance(one, Store) for one in done):
            raise RaceError(f"{self._code.name}: {self._entry} writes nothing at {patch.where(address)}")
        return done if self._handles else self._diverted(patch, data, done)

    @staticmethod
    def _diverted(patch: Patch, data: bytes, done: Sequence[Operation]) -> list[Operation]:
        """Give a breakpoint that is there only meanwhile its handler, until the function returns."""
        trap = patch.isa.traps.breakpoints[-1]
        meanwhile = any(
            isinstance(one, Store) and one.address == patch.site and one.data.startswith(trap) for one in done
        )
        if patch.kind is Kind.TRAP or not meanwhile or data.startswith(trap):
            return list(done)
        return [Divert(on=True), *done, Divert(on=False)]
