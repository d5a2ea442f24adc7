"""x86 instruction length, by capstone; `mode` is capstone's."""

from __future__ import annotations

from functools import lru_cache

from emu.isa.disassembly import decoder, lengths
from emu.support.capstone_numbers import CS_ARCH_X86, CS_MODE_64


def instruction_length(code: bytes, *, mode: int = CS_MODE_64) -> int:
    """Return the length in bytes, 0 if the bytes do not decode."""
    return _length(code[:15], mode)


@lru_cache(1 << 12)
def _length(code: bytes, mode: int) -> int:
    for _address, size, _mnemonic, _operands in decoder((CS_ARCH_X86, mode)).disasm_lite(code, 0, 1):
        return int(size)
    return 0


@lru_cache(1 << 13)
def instruction_lengths(code: bytes, *, mode: int = CS_MODE_64) -> tuple[int, ...]:
    """Return the length of each instruction, up to the first bytes that do not decode."""
    return lengths((CS_ARCH_X86, mode), code)
