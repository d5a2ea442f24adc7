"""The framework, as dtrace.c: probes, enablings, DIF, buffers, aggregations, speculations."""
