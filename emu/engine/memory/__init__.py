"""Guest memory, for the engine and for the host."""
