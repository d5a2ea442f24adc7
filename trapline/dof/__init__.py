"""DOF, the DTrace object format: the form of a program for the framework."""

from __future__ import annotations

from providers.dof.sections import DofError
from trapline.dof.decode import decode
from trapline.dof.encode import encode
from trapline.dof.layout import OPTIONS

__all__ = ["OPTIONS", "DofError", "decode", "encode"]
