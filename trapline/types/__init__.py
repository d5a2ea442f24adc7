"""The traced system's types and symbols, from debugging information, for the D compiler."""

from __future__ import annotations

from emu.elf.image import Image
from trapline.types.ctf import CtfTypes
from trapline.types.dwarf import DwarfTypes
from trapline.types.kernel import KernelNames, KernelSignatures, ModuleTypes, Types
from trapline.types.process import ProcessNames

__all__ = [
    "CtfTypes",
    "DwarfTypes",
    "KernelNames",
    "KernelSignatures",
    "ModuleTypes",
    "ProcessNames",
    "Types",
    "types_of",
]


def types_of(image: Image, parent: Types | None = None) -> Types:
    """Return the types of an image: from DWARF if it has that, else from CTF, else none.

    `parent` has the types of the kernel, to which the CTF of its modules may refer.
    """
    if image.has_dwarf:
        return DwarfTypes(image)
    return CtfTypes(image, parent if isinstance(parent, CtfTypes) else None)
