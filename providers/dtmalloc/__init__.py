"""The dtmalloc provider: probes where memory of a type is taken and given back."""

from __future__ import annotations

from providers.dtmalloc.dtmalloc import Dtmalloc

__all__ = ["Dtmalloc"]
