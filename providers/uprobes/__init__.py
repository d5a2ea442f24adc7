"""Linux uprobes: breakpoints by file and offset, and return probes."""

from __future__ import annotations

from providers.uprobes.port import PORTS
from providers.uprobes.records import Consumer, HandlerResult, Uprobe
from providers.uprobes.returns import needs_return_address
from providers.uprobes.uprobes import UprobeError, Uprobes

__all__ = ["PORTS", "Consumer", "HandlerResult", "Uprobe", "UprobeError", "Uprobes", "needs_return_address"]
