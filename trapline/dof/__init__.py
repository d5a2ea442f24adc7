"""DOF, the DTrace object format: what a program is when it reaches the framework."""

from __future__ import annotations

from trapline.dof.decode import DofError, decode
from trapline.dof.encode import encode

__all__ = ["DofError", "decode", "encode"]
