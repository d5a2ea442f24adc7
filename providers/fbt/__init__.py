"""FBT, function boundary tracing.

A probe where each kernel function begins, and one wherever it returns.
"""

from __future__ import annotations

from providers.fbt.fbt import FBT, Signature, SignatureSource, sound_sites, walk
from providers.fbt.port import ENTRY, RETURN
from providers.fbt.ports import PORTS

__all__ = ["ENTRY", "FBT", "PORTS", "RETURN", "Signature", "SignatureSource", "sound_sites", "walk"]
