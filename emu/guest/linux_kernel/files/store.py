"""The user's kernels: unpacked, each in a folder of its own.

The folder is $TRAPLINE_DATA, or trapline below $XDG_DATA_HOME or ~/.local/share.  In it the folder
kernels/<isa> has these files:

| file | content |
| --- | --- |
| kernel | the bytes for memory |
| kernel.json | its release, its digest, its load address and entry, its source |
| busybox | a static busybox for the ISA |
| modules | its modules, if the package has them |
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any, Final

from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.module_files import files_in
from emu.guest.linux_kernel.image import KernelImage
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from emu.isa.base import Isa
from emu.support.immutable import immutable

_KERNEL, _FACTS, _BUSYBOX, _MODULES = "kernel", "kernel.json", "busybox", "modules"


@immutable
class StoredKernel:
    """A kernel of the user."""

    image: KernelImage
    busybox: Path
    modules: Path
    """The folder of its modules; it may not exist."""
    source: str
    """The package or the file that it came from."""


def data_folder() -> Path:
    """Return the folder of the user's data; it may not exist."""
    chosen, base = os.environ.get("TRAPLINE_DATA"), os.environ.get("XDG_DATA_HOME")
    return Path(chosen) if chosen else (Path(base) if base else Path.home() / ".local" / "share") / "trapline"


def _folder(isa: str) -> Path:
    return data_folder() / "kernels" / isa


def keep(image: KernelImage, busybox: bytes, source: str, modules: Path | None = None) -> StoredKernel:
    """Store a kernel as the one of its ISA, and return it; `modules`: a folder with its modules.

    Raises `KernelFileError` if the folder cannot be written.
    """
    folder = _folder(image.isa)
    facts = {
        "release": image.release,
        "digest": hashlib.sha256(image.data).hexdigest(),
        "base": image.base,
        "entry": image.entry,
        "setup": image.setup.hex(),
        "source": source,
    }
    aside = folder.with_name(f".{image.isa}.{os.getpid()}")
    try:
        aside.mkdir(parents=True, exist_ok=True)
        (aside / _KERNEL).write_bytes(image.data)
        (aside / _BUSYBOX).write_bytes(busybox)
        (aside / _FACTS).write_text(json.dumps(facts, indent=1) + "\n")
        if modules is not None:
            (aside / _MODULES).mkdir()
            for path in files_in(modules).values():
                shutil.copyfile(path, aside / _MODULES / path.name)
        if folder.exists():
            shutil.rmtree(folder)
        aside.rename(folder)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise KernelFileError(
            f"{error.filename or folder}: {(error.strerror or 'cannot be written').lower()}; "
            "$TRAPLINE_DATA names another folder"
        ) from None
    return stored(ISAS[image.isa])


def stored(isa: Isa) -> StoredKernel:
    """Return the kernel of an ISA.  Raises `KernelFileError` if there is none."""
    if BOARDS.get(isa.name) is None:
        raise KernelFileError(f"there is no machine for Linux kernels of {isa.title}")
    return at(_folder(isa.name))


def is_stored(path: Path) -> bool:
    """Return whether a file is the kernel of a folder that `keep` has written."""
    return path.name == _KERNEL and path.parent.name in ISAS and path.with_name(_FACTS).is_file()


def path_of(isa: Isa) -> Path:
    """Return the file of an ISA's kernel; it may not exist."""
    return _folder(isa.name) / _KERNEL


def at(folder: Path) -> StoredKernel:
    """Return the kernel in a folder, which is named after its ISA.

    Raises `KernelFileError` if it is missing or damaged.
    """
    isa = ISAS[folder.name]
    missing: Final = f"no {isa.title} Linux kernel is installed; fetch one with: trapline kernel get {isa.name}"
    try:
        facts: dict[str, Any] = json.loads((folder / _FACTS).read_text())
        image = KernelImage(
            isa.name,
            str(facts["release"]),
            (folder / _KERNEL).read_bytes,
            int(facts["base"]),
            int(facts["entry"]),
            bytes.fromhex(facts["setup"]),
            str(facts["digest"]),
        )
        source = str(facts["source"])
    except FileNotFoundError:
        raise KernelFileError(missing) from None
    except (OSError, ValueError, KeyError, TypeError):
        raise KernelFileError(f"{folder}: damaged; fetch it again with: trapline kernel get {isa.name}") from None
    if not (folder / _BUSYBOX).is_file() or not (folder / _KERNEL).is_file():
        raise KernelFileError(missing)
    return StoredKernel(image, folder / _BUSYBOX, folder / _MODULES, source)


def all_stored() -> list[StoredKernel]:
    """Return the complete kernels, by ISA."""
    found = []
    for isa in ISAS.values():
        try:
            found.append(stored(isa))
        except KernelFileError:
            continue
    return found
