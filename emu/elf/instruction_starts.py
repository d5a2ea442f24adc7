"""The addresses of an ELF file at which an instruction can begin."""

from __future__ import annotations

from emu.elf.image import Image, SegmentFlag
from emu.isa.disassembly import instructions


def no_instruction(image: Image, address: int) -> str | None:
    """Return the reason why no instruction can begin at an address; None: one may begin there.

    Instructions are decoded from the start of the function that contains the address; without its
    symbol every address is possible.
    """
    segment = next((one for one in image.segments if one.vaddr <= address < one.vaddr + one.memsz), None)
    if segment is None:
        return "no segment is loaded there"
    if not segment.flags & SegmentFlag.EXECUTE:
        return "it holds data, not code"
    found = image.symbol_at(address)
    if found is None or not found[0].is_function:
        return None
    symbol, offset = found
    for at, length in instructions(image.isa.instruction_length, image.code(symbol), offset):
        if at + length > offset:
            return f"it is inside an instruction of {symbol.name}"
    return None
