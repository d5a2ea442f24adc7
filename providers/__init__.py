"""Providers: who puts tracepoints into code and turns a trap into a probe firing."""
