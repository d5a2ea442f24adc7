"""FBT, function boundary tracing: a probe where each kernel function begins, and one wherever it returns."""

from __future__ import annotations

from providers.fbt.fbt import FBT, PORTS, Fidelity, Signature, SignatureSource, sound_sites, walk

__all__ = ["FBT", "PORTS", "Fidelity", "Signature", "SignatureSource", "sound_sites", "walk"]
