"""The package's own files, named `testbins:NAME`: kernels, their programs, and Linux programs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from emu.guest.kernel.boot import images
from emu.isa import DEFAULT_ISA
from emu.isa.base import Isa
from emu.support.did_you_mean import did_you_mean

OWN: Final = "testbins:"
# The folders of the package's own files, below the folder of an ISA.
_OWN_FOLDERS: Final = ("", "linux", "bin", "functions", "objects")
# The folders of the kernel guest's programs and of their libraries.
_USER: Final = ("bin", "sbin", "usr/bin", "usr/sbin", "lib", "libexec")
_ELF: Final = b"\x7fELF"


class TargetError(Exception):
    """A word does not name a file; the message says why, on one line."""


def own_files(name: str, isa: Isa) -> list[Path]:
    """Return the files of the name after `OWN`.  Raises `TargetError`."""
    built = images.built(isa)
    if name == "user":
        folders = [built / folder for folder in _USER if (built / folder).is_dir()]
        return sorted(path for folder in folders for path in folder.iterdir() if _is_elf(path))
    for folder in _OWN_FOLDERS:
        path = built / folder / name
        if path.is_file():
            return [path]
    known = ["kernel", "user", *(path.name for folder in _OWN_FOLDERS[1:] for path in (built / folder).iterdir())]
    others = f"; there are {', '.join(sorted(known))}"
    hint = did_you_mean(name, known, others, written=f"'{OWN}{{}}'".format)
    raise TargetError(f"there is no {OWN}{name}{hint}")


def _is_elf(path: Path) -> bool:
    """Return whether a file is compiled: some of the guest's programs are scripts."""
    with path.open("rb") as file:
        return file.read(len(_ELF)) == _ELF


def own_program(words: tuple[str, ...], isa: Isa | None = None) -> tuple[str, ...]:
    """Return a command line whose program may be one of the package's own.

    Raises `TargetError`.
    """
    if not words or not words[0].startswith(OWN):
        return words
    path, *others = own_files(words[0].removeprefix(OWN), isa or DEFAULT_ISA)
    if others:
        raise TargetError(f"{words[0]} stands for {len(others) + 1} files; name one of them")
    return (str(path), *words[1:])


def is_guest_program(path: Path, isa: Isa) -> bool:
    """Return whether a file is one of the kernel guest's own programs."""
    built = images.built(isa)
    return path.is_relative_to(built) and str(path.relative_to(built)) in images.programs(isa)
