"""The D compiler: grammar, syntax tree, types, checks, DIF."""
