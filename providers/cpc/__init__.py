"""The cpc provider: probes that fire after every N events of the CPU."""

from __future__ import annotations

from providers.cpc.cpc import Cpc, events_of

__all__ = ["Cpc", "events_of"]
