"""Probes and their enablings: from a firing to the actions of its clauses."""
