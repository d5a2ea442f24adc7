"""Programs made of bytes: the smallest ELF file with some machine code."""

import struct

from emu.isa import ISAS

BASE = 0x40_0000
PAGE = 4096
SIZE_64, SIZE_32 = (64, 56), (52, 32)


def elf_program(isa, code, *, writable=True, entry=0):
    """Return a static ELF file whose one segment begins with `code`, and starts at an offset in it."""
    machine = ISAS[isa].linux.elf_machine
    flags = 7 if writable else 5
    wide = ISAS[isa].word == 8
    header_size, row_size = SIZE_64 if wide else SIZE_32
    ident = b"\x7fELF" + bytes((2 if wide else 1, 1, 1)) + bytes(9)
    rest = (2, machine, 1, BASE + entry, header_size, 0, 0, header_size, row_size, 1, 0, 0, 0)
    header = ident + struct.pack("<HHIQQQIHHHHHH" if wide else "<HHIIIIIHHHHHH", *rest)
    size = len(code)
    if wide:
        row = struct.pack("<IIQQQQQQ", 1, flags, PAGE, BASE, BASE, size, size, PAGE)
    else:
        row = struct.pack("<IIIIIIII", 1, PAGE, BASE, BASE, size, size, flags, PAGE)
    return (header + row).ljust(PAGE, b"\0") + code
