"""Linux uprobes: breakpoints by file and offset, and return probes."""

from __future__ import annotations

from providers.uprobes.port import Refused, Simulated, SingleStepped
from providers.uprobes.records import Consumer, HandlerResult, Uprobe
from providers.uprobes.uprobes import PORTS, UprobeError, Uprobes

__all__ = [
    "PORTS",
    "Consumer",
    "HandlerResult",
    "Refused",
    "Simulated",
    "SingleStepped",
    "Uprobe",
    "UprobeError",
    "Uprobes",
]
