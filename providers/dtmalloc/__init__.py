"""The dtmalloc provider: probes at allocations and frees of memory of a type."""

from __future__ import annotations

from providers.dtmalloc.dtmalloc import Dtmalloc

__all__ = ["Dtmalloc"]
