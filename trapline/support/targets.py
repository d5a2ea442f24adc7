"""TARGET: the word by which each command names the file to examine.

* a path; with a root directory, a path in it first;
* `testbins:NAME`: one of the package's own, such as `testbins:kernel` or `testbins:zoo`;
* `linux-kernel`: the Linux kernel that `trapline kernel get` has stored for an ISA;
* with a root directory, the name of a program or a library in it: `bash`, `libc`, `libc.so.6`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from emu.elf.file import ElfKind
from emu.elf.image import Image
from emu.guest.linux.errno import LinuxError
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux.fs.namei import path_of, walk
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import store
from emu.isa import DEFAULT_ISA, ISAS
from emu.isa.base import Isa
from trapline.support.own_files import OWN, TargetError, own_files

# The word for the Linux kernel that the user has fetched.
STORED: Final = "linux-kernel"
_PROGRAMS: Final = ("/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin")
_LIBRARIES: Final = ("/lib", "/usr/lib", "/lib64", "/usr/lib64")
# Folders of libraries have subfolders named after machines.
_MULTIARCH: Final = "-linux-gnu"


def default_provider(image: Image) -> str:
    """Return the provider for an ELF file: fbt for kernels and their modules, pid for programs."""
    if image.kind is ElfKind.RELOCATABLE:
        return "fbt"
    return "fbt" if any(segment.vaddr >= image.isa.kernel_start for segment in image.segments) else "pid"


def find_file(word: str, isa: Isa | None = None, root: Path | None = None) -> Path:
    """Return the one file that a word names.  Raises `TargetError`."""
    found = find_files(word, isa, root)
    if len(found) != 1:
        raise TargetError(f"{word} stands for {len(found)} files; name one of them")
    return found[0]


def find_files(word: str, isa: Isa | None = None, root: Path | None = None) -> list[Path]:
    """Return the host's files that a word names; they may not exist.  Raises `TargetError`."""
    if word.startswith(OWN):
        return own_files(word.removeprefix(OWN), isa or DEFAULT_ISA)
    if word == STORED:
        return [_stored(isa or DEFAULT_ISA)]
    if root is None:
        return [Path(word)]
    if not root.is_dir():
        raise TargetError(f"{root}: not a directory; --root names the directory that a program sees as /")
    inside = find_in(Directory(host=root.resolve()), word)
    if inside is not None:
        return [root.resolve() / inside.lstrip("/")]
    if "/" not in word and not Path(word).exists():
        raise TargetError(f"{word}: neither a program nor a library of {root}; give its path")
    return [Path(word)]


def _stored(isa: Isa) -> Path:
    """Return the file of a stored kernel.  Raises `TargetError` if there is none."""
    try:
        store.stored(isa)
    except KernelFileError as error:
        raise TargetError(str(error)) from None
    return store.path_of(isa)


def isas_of(word: str, isa: Isa | None) -> list[Isa | None]:
    """Return the ISAs for which a word is looked up: by default all, for the package's own."""
    return list(ISAS.values()) if isa is None and word.startswith(OWN) else [isa]


def find_in(root: Directory, name: str) -> str | None:
    """Return the path in a guest's root of a file, a program, or a library; None: there is none.

    A library is named by its file or by the part before the first dot, as with perf-tools'
    `uprobe`.  Files with a version come first: libc.so without one is often a script of the linker.
    """
    if "/" in name:
        return _regular(root, name) or _regular(root, f"/usr/{name.lstrip('/')}")
    libraries = sorted(_libraries(root, name), key=_is_unversioned)
    for candidate in (*(f"{folder}/{name}" for folder in _PROGRAMS), *libraries):
        found = _regular(root, candidate)
        if found is not None:
            return found
    return None


def _regular(root: Directory, path: str) -> str | None:
    try:
        entry = walk(root, root, path)
        inode = entry.found()
    except LinuxError:
        return None
    return path_of(root, entry.directory, entry.name) if isinstance(inode, RegularFile) else None


def _libraries(root: Directory, name: str) -> Iterator[str]:
    for folder in _LIBRARIES:
        entries = _entries(root, folder)
        for entry in entries:
            if _is_library(entry, name):
                yield f"{folder}/{entry}"
            elif entry.endswith(_MULTIARCH):
                inside = _entries(root, f"{folder}/{entry}")
                yield from (f"{folder}/{entry}/{one}" for one in inside if _is_library(one, name))


def _is_library(entry: str, name: str) -> bool:
    return ".so" in entry and name in {entry, entry.split(".", maxsplit=1)[0]}


def _is_unversioned(path: str) -> bool:
    return path.endswith(".so")


def _entries(root: Directory, folder: str) -> list[str]:
    try:
        inode = walk(root, root, folder).found()
    except LinuxError:
        return []
    return sorted(inode.entries()) if isinstance(inode, Directory) else []
