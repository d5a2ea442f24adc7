"""x86-64 instruction length, by capstone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache

import capstone


@cache
def _decoder() -> capstone.Cs:
    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def instruction_length(code: bytes) -> int:
    """Return the length in bytes, 0 if the bytes do not decode."""
    return _length(code[:15])


@lru_cache(1 << 12)
def _length(code: bytes) -> int:
    for _address, size, _mnemonic, _operands in _decoder().disasm_lite(code, 0, 1):
        return int(size)
    return 0


def instruction_lengths(code: bytes) -> Iterator[int]:
    """Yield the length of each instruction, up to the first bytes that do not decode."""
    return (int(size) for _address, size, _mnemonic, _operands in _decoder().disasm_lite(code, 0))
