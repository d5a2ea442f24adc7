"""The assembly language of x86, in Intel syntax: what keystone lacks, or encodes wrongly.

Source of the encodings: Intel SDM volume 2.
"""

from __future__ import annotations

import re
from typing import Final

from emu.isa.assembly import Assembly, OutsideAssembler, Row, immediate, rows
from emu.isa.fields import Field

# Keystone's number of the architecture, and of its modes (keystone/keystone_const.py).
_X86: Final = 4
MODE_64: Final = 8
MODE_32: Final = 4

# Keystone lacks endbr64 and endbr32, and makes sysretq of sysret and sysexitq of sysexit.
_BOTH: Final = tuple(
    rows("""
endbr64 = fa1e0ff3
endbr32 = fb1e0ff3
sysret = 070f
sysexit = 350f
""")
)
# Far jumps and calls with an address of 32 bits: keystone takes only 16 bits of it.
_FAR: Final = tuple(
    rows("""
ljmp segment:offset = 000000000000ea
ljmp segment, offset = 000000000000ea
lcall segment:offset = 0000000000009a
lcall segment, offset = 0000000000009a
""")
)
_KINDS: Final = {"segment": immediate(Field(((55, 40, 0),))), "offset": immediate(Field(((39, 8, 0),)))}
_PREFIXES: Final = {"bnd": b"\xf2", "notrack": b"\x3e"}
_SEGMENT: Final = re.compile(r"[c-g]s|ss")
_STACK: Final = re.compile(r"\b[er]?[bs]p\b", re.IGNORECASE)
_REGISTERS: Final = re.compile(
    r"[er]?(?:[abcd]x|[sd]i|[sb]p|ip)|[abcd][lh]|(?:[sd]i|[sb]p)l|r(?:[89]|1[0-5])[dwb]?|[c-g]s|ss"
    r"|[xyz]mm\d+|mm\d|k[0-7]|cr\d+|dr\d+"
)
# Keystone lacks CET's shadow stacks, much of AVX-512, AES and SHA of wide vectors, and what came later.
_INTEL: Final = ".intel_syntax noprefix"
_OUTSIDE: Final = {
    mode: (
        OutsideAssembler("llvm-mc", (f"-triple={triple}", "-filetype=obj"), "llvm", _INTEL),
        OutsideAssembler("x86_64-linux-gnu-as", (option,), "binutils-x86-64-linux-gnu", _INTEL),
    )
    for mode, triple, option in ((MODE_64, "x86_64", "--64"), (MODE_32, "i386", "--32"))
}
_NOP, _LONG_NOP, _FIELD = b"\x0f\x18", b"\x0f\x1f", 0x38


def _dropped(register: str, statement: str) -> bool:
    """Return whether a segment is left out since it is the default one.

    Long mode ignores all but fs and gs.
    """
    if not _SEGMENT.fullmatch(register) or register in {"fs", "gs"}:
        return False
    return register == ("ss" if _STACK.search(statement) else "ds")


def _repair(statement: str, code: bytes) -> bytes:
    """Return a long nop with the opcode that processors have for it.

    Keystone gives it that of prefetches, which does nothing only if the processor says so.
    """
    at = code.find(_NOP)
    if not statement.startswith("nop") or at < 0:
        return code
    return code[:at] + _LONG_NOP + bytes((code[at + 2] & ~_FIELD,)) + code[at + 3 :]


def assembly(mode: int) -> Assembly:
    """Return the assembly language of a mode."""
    table: tuple[Row, ...] = _BOTH if mode == MODE_64 else _BOTH + _FAR
    return Assembly(
        table=table,
        outside=_OUTSIDE[mode],
        kinds=_KINDS,
        keystone=(_X86, mode),
        prefixes=_PREFIXES,
        registers=_REGISTERS,
        dropped=_dropped,
        repair=_repair,
    )
