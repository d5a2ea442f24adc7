"""What the traced system's own types and symbols are: read from debugging information, given to the D compiler."""

from __future__ import annotations

from trapline.types.dwarf import DwarfTypes
from trapline.types.kernel import KernelNames, KernelSignatures

__all__ = ["DwarfTypes", "KernelNames", "KernelSignatures"]
