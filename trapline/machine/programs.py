"""Programs of this host that a command names: their words, and their ISA.

It imports little, so that a run that traces only the kernel does not load the Linux guest.
"""

from __future__ import annotations

import os
import posixpath
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.guest.kernel.boot import images
from emu.guest.linux.launch import ENVIRONMENT
from emu.isa import Isa
from emu.support.did_you_mean import did_you_mean

_PROGRAMS: Final = ("bin/", "sbin/", "usr/bin/")
# The commands that the guest's shell implements itself.
_BUILTINS: Final = frozenset({"cd", "exit", "export", "test", "unset", "wait"})


def program_isa(words: Sequence[str], root: Path | None) -> Isa | None:
    """Return the ISA of the program of a command; None: it is not an ELF file of a known machine.

    The ISA of a script is that of its interpreter.
    """
    for path in _candidates(words[0], root):
        interpreter = _interpreter(path)
        for file in [path] if interpreter is None else _candidates(interpreter, root):
            image = _image(file)
            if image is not None:
                return image.isa
    return None


def _candidates(name: str, root: Path | None) -> list[Path]:
    """Return the possible paths of a program on the host: in the root first."""
    if root is None:
        return [Path(name)]
    names = [name] if "/" in name else [f"{folder}/{name}" for folder in ENVIRONMENT["PATH"].split(":")]
    inside = [root / one.lstrip("/") for one in names]
    return [*inside, *(root / "usr" / one.lstrip("/") for one in names), Path(name)]


def _image(path: Path) -> Image | None:
    try:
        return Image(path)
    except (ElfError, OSError):
        return None


def _interpreter(path: Path) -> str | None:
    """Return the interpreter that a script names, None if it is not a script."""
    try:
        if not path.is_file():  # reading a pipe would wait
            return None
        with path.open("rb") as file:
            head = file.read(256)
    except OSError:
        return None
    words = head[2:].split(b"\n", 1)[0].split() if head.startswith(b"#!") else ()
    return os.fsdecode(words[0]) if words else None


def is_missing(command: str, isa: Isa) -> bool:
    """Return whether a line for the guest's shell begins with a path without a program."""
    first = _first_word(command)
    return "/" in first and posixpath.normpath(f"/{first}").lstrip("/") not in images.programs(isa)


def missing_program(command: str, isa: Isa) -> str | None:
    """Return a message if a line for the kernel guest's shell does not begin with a program.

    None: it begins with one.
    """
    first = _first_word(command)
    known = {posixpath.basename(path) for path in images.programs(isa) if path.startswith(_PROGRAMS)}
    if first in known | _BUILTINS or ("/" in first and not is_missing(command, isa)):
        return None
    hint = did_you_mean(first, sorted(known), " (the guest's are those of its /bin, /sbin and /usr/bin)")
    return f"{first}: the guest has no such program{hint}"


def _first_word(command: str) -> str:
    words = shlex.shlex(command, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    return words.get_token() or ""


def split(command: str) -> tuple[str, ...]:
    """Split a command of -c into words, as a shell does.

    Raises `ValueError`: a quote is open, or there is no word.
    """
    words = tuple(shlex.split(command))
    if not words:
        raise ValueError("a command is missing")
    return words
