"""ELF files: headers, symbols, source lines, unwinding, linking."""
