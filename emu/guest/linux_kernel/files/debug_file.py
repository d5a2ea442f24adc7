"""The debug file of a kernel, which has the source of its code.

Debian has it in a package of its own (linux-image-RELEASE-dbg).  It is looked for in the folder of
debug files: by the kernel's build identifier, then where distributions put the file `vmlinux`.  The
identifier has to be the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from emu.elf.debug_files import build_id, debug_file, folders
from emu.elf.file import ElfError, ElfFile
from emu.elf.source.inlined import Source
from emu.elf.source.units import Units
from emu.guest.linux_kernel.files.facts import KernelFacts


def kernel_source(facts: KernelFacts) -> Source | None:
    """Return the source of a kernel's code; None: there is no debug file of it."""
    identifier = build_id(facts.content(facts.between("__start_notes", "__stop_notes")))
    for path in _paths(identifier, facts.image.release) if identifier else ():
        try:
            file = ElfFile(path)
            if build_id(file.notes()) == identifier:
                return Source(Units(file))
        except ElfError:
            continue
    return None


def _paths(identifier: str, release: str) -> Iterator[Path]:
    found = debug_file(identifier)
    if found is not None:
        yield found
    for folder in folders():
        yield folder / "boot" / f"vmlinux-{release}"
        yield folder / "lib" / "modules" / release / "vmlinux"
