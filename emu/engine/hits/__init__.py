"""Hits of tracepoints, handled in machine code."""
