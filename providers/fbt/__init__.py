"""FBT, function boundary tracing: a probe where each kernel function begins, and one wherever it returns."""

from __future__ import annotations

from providers.fbt.fbt import FBT, PORTS, Fidelity, Signature, SignatureSource, sound_sites, walk
from providers.fbt.port import ENTRY, RETURN

__all__ = ["ENTRY", "FBT", "PORTS", "RETURN", "Fidelity", "Signature", "SignatureSource", "sound_sites", "walk"]
