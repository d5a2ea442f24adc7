"""The profile provider: probes that fire every so often."""

from __future__ import annotations

from providers.profile.profile import Profile, interval_of

__all__ = ["Profile", "interval_of"]
