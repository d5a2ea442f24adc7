"""The profile provider: probes that fire at regular intervals."""

from __future__ import annotations

from providers.profile.profile import Profile, interval_of

__all__ = ["Profile", "interval_of"]
