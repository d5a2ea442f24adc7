"""Exhibits about writing a patch while CPUs execute the code."""
