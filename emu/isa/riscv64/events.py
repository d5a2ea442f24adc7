"""The events of RV64GC's instructions (RISC-V unprivileged specification)."""

from __future__ import annotations

from typing import Final

from emu.isa.events import Events
from emu.isa.riscv64.length import instruction_length

_LOAD, _STORE, _BRANCH, _NONE = Events.LOAD, Events.STORE, Events.BRANCH, Events(0)
# Operation codes (bits 6..0) of four bytes.
_OPCODES: Final = {0x03: _LOAD, 0x07: _LOAD, 0x23: _STORE, 0x27: _STORE, 0x63: _BRANCH, 0x67: _BRANCH, 0x6F: _BRANCH}
_ATOMIC: Final = 0x2F
# Bits 31..27 of lr and sc; the other atomic instructions load and store.
_ATOMICS: Final = {2: _LOAD, 3: _STORE}
# Bits 1..0 and 15..13 of two bytes.
_COMPRESSED: Final = {
    **dict.fromkeys([(0, 1), (0, 2), (0, 3), (2, 1), (2, 2), (2, 3)], _LOAD),
    **dict.fromkeys([(0, 5), (0, 6), (0, 7), (2, 5), (2, 6), (2, 7)], _STORE),
    **dict.fromkeys([(1, 5), (1, 6), (1, 7)], _BRANCH),
}
_REGISTER_JUMP: Final = (2, 4)


def events(code: bytes) -> Events:
    """Return the events of the instruction that starts these bytes."""
    length = instruction_length(code)
    word = int.from_bytes(code[:length], "little")
    if length == 4:
        if word & 0x7F == _ATOMIC:
            return _ATOMICS.get(word >> 27, _LOAD | _STORE)
        return _OPCODES.get(word & 0x7F, _NONE)
    kind = word & 3, word >> 13
    if kind == _REGISTER_JUMP:  # c.jr, c.jalr: rs1, and no rs2; else c.mv, c.add, c.ebreak
        return _BRANCH if word & 0xF80 and not word & 0x7C else _NONE
    return _COMPRESSED.get(kind, _NONE)
