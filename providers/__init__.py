"""Providers: they put tracepoints into code, and turn traps into firings of probes."""
