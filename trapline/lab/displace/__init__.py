"""The assembly bench: what becomes of an instruction under every provider."""
