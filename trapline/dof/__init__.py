"""DOF, the DTrace object format: what a program is when it reaches the framework."""

from __future__ import annotations

from providers.dof.sections import DofError
from trapline.dof.decode import decode
from trapline.dof.encode import encode

__all__ = ["DofError", "decode", "encode"]
