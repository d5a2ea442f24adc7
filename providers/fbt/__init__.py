"""FBT, function boundary tracing.

It has a probe at the entry of each kernel function, and one at its returns.
"""

from __future__ import annotations

from providers.fbt.fbt import FBT, Signature, SignatureSource, sound_sites, walk
from providers.fbt.port import ENTRY, PORTS, RETURN

__all__ = ["ENTRY", "FBT", "PORTS", "RETURN", "Signature", "SignatureSource", "sound_sites", "walk"]
