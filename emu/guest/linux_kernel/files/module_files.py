"""The modules of a kernel's package, and the ones that others need.

A module's file is an ELF file, compressed or not.  Its section .modinfo has strings such as
`depends=jbd2,mbcache` and `softdep=pre: crc32c`.

Source: Linux 6.12 include/linux/module.h (MODULE_INFO, MODULE_SOFTDEP), scripts/mod/modpost.c.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from emu.elf.file import ElfError
from emu.elf.image import Image
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.compression import is_compressed, unpack

_SUFFIX: Final = ".ko"


def plain(name: str) -> str:
    """Return a module's name as the kernel writes it: files may have dashes."""
    return name.replace("-", "_")


def files_in(folder: Path) -> dict[str, Path]:
    """Return the files of the modules in a folder and its folders, by the modules' names."""
    found = (path for path in sorted(folder.rglob(f"*{_SUFFIX}*")) if path.is_file())
    return {plain(path.name.partition(_SUFFIX)[0]): path for path in found}


def with_dependencies(wanted: Sequence[str], files: Mapping[str, Path]) -> dict[str, bytes]:
    """Return the content of modules and of those that they need, in an order for loading.

    Raises `KernelFileError` if there is no such module.
    """
    order: dict[str, bytes] = {}

    def add(name: str, *, needed: bool) -> None:
        if name in order or (name not in files and not needed):
            return
        if name not in files:
            raise KernelFileError(f"no module {name} is stored; it may be a part of the kernel itself")
        content = _content(files[name])
        for other in _needs(files[name].name, content):
            add(other, needed=False)
        order[name] = content

    for name in wanted:
        add(plain(name), needed=True)
    return order


def _content(path: Path) -> bytes:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise KernelFileError(f"{path}: {(error.strerror or 'cannot be read').lower()}") from None
    return unpack(data, str(path)) if is_compressed(data) else data


def _needs(name: str, content: bytes) -> Iterator[str]:
    """Yield the modules that a module depends on, also those that are parts of the kernel."""
    try:
        section = Image(name, content=content).section(".modinfo")
    except ElfError as error:
        raise KernelFileError(str(error)) from None
    for entry in (section.data if section else b"").split(b"\0"):
        key, _, value = entry.decode("utf-8", "replace").partition("=")
        if key == "depends":
            yield from map(plain, filter(None, value.split(",")))
        elif key == "softdep" and value.startswith("pre:"):
            yield from map(plain, value.removeprefix("pre:").partition("post:")[0].split())
