"""kinst: a probe at any instruction of a kernel function."""

from __future__ import annotations

from providers.kinst.kinst import PORTS, Kinst

__all__ = ["PORTS", "Kinst"]
