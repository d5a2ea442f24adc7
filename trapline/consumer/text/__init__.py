"""Data as text: formats, structures, symbols, columns."""
