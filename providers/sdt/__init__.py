"""SDT: probes that are written into the kernel's code, and the providers they make.

These providers are proc, sched, io, lockstat and others (docs/sdt.md).
"""

from __future__ import annotations

from providers.sdt.illumos import IllumosSdt, IllumosSite
from providers.sdt.sdt import Sdt, SdtProvider

__all__ = ["IllumosSdt", "IllumosSite", "Sdt", "SdtProvider"]
