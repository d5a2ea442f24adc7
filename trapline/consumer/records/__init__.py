"""Records of the trace: decoded, and consumed by their plans."""
