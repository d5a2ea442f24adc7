"""`trapline check`: whether a patched program is still the same program."""
