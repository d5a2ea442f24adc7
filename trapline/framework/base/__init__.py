"""The framework's data: programs, DIF's operations, probes, blocks, variables."""
