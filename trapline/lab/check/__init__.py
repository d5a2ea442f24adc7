"""`trapline check` tests whether a patched program still behaves like the original."""
