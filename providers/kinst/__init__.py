"""kinst: a probe at any instruction of a kernel function."""

from __future__ import annotations

from providers.kinst.kinst import Kinst
from providers.kinst.port import PORTS

__all__ = ["PORTS", "Kinst"]
