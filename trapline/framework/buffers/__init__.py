"""Buffers of records, aggregations and speculations."""
