"""The LOCK prefix, and where it makes an instruction undefined.

That is how FBT on i386 gets its trap without int3: 0xf0 over `push ebp` leaves a LOCK before `mov
ebp, esp`, which is not an instruction that can be locked, so the CPU raises #UD.  Unicorn's decoder
skips the prefix instead (QEMU 5 tests it for a few instructions only), so the engine asks here.

Source: Intel SDM volume 2, "LOCK - Assert LOCK# Signal Prefix"; FreeBSD
sys/cddl/dev/fbt/x86/fbt_isa.c.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.isa.x86.instruction import PREFIXES

LOCK: Final = 0xF0
_OTHER_PREFIXES: Final = PREFIXES - {LOCK}
# add, or, adc, sbb, and, sub, xor with a register as the source; not cmp.
_ARITHMETIC: Final = frozenset({row + low for row in range(0x00, 0x38, 8) for low in (0, 1)})
_IMMEDIATE: Final = frozenset({0x80, 0x81, 0x83})
# Opcode -> what may be in the reg field of the ModRM byte.
_LOCKABLE: Final = {
    **dict.fromkeys(_ARITHMETIC, range(8)),
    **dict.fromkeys(_IMMEDIATE, range(7)),
    **dict.fromkeys((0x86, 0x87), range(8)),  # xchg
    **dict.fromkeys((0xF6, 0xF7), range(2, 4)),  # not, neg
    **dict.fromkeys((0xFE, 0xFF), range(2)),  # inc, dec
}
_LOCKABLE_0F: Final = {
    **dict.fromkeys((0xB0, 0xB1, 0xC0, 0xC1), range(8)),  # cmpxchg, xadd
    **dict.fromkeys((0xAB, 0xB3, 0xBB), range(8)),  # bts, btr, btc
    0xBA: range(5, 8),  # the same with an immediate
    0xC7: range(1, 2),  # cmpxchg8b
}


def refused(code: bytes) -> bool:
    """Return whether these bytes start with a LOCK prefix that the CPU refuses (#UD)."""
    if not code or code[0] != LOCK:
        return False
    at = 1
    while at < len(code) and code[at] in _OTHER_PREFIXES:
        at += 1
    rest = code[at : at + 3]
    escape = rest[:1] == b"\x0f"
    opcode, modrm = rest[escape : escape + 1], rest[escape + 1 : escape + 2]
    return not modrm or not lockable(opcode[0], lambda: modrm[0], escape=escape)


def lockable(opcode: int, modrm: Callable[[], int], *, escape: bool) -> bool:
    """Return whether an instruction may have a LOCK prefix.

    `escape`: 0f precedes its opcode; `modrm()` reads the byte behind it, and is not called for
    an opcode that cannot be locked.
    """
    fields = (_LOCKABLE_0F if escape else _LOCKABLE).get(opcode)
    if fields is None:
        return False
    byte = modrm()
    return byte >> 6 != 3 and byte >> 3 & 7 in fields
