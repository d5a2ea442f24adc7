"""The cpc provider: probes that fire every so many events of the CPU."""

from __future__ import annotations

from providers.cpc.cpc import Cpc, events_of

__all__ = ["Cpc", "events_of"]
