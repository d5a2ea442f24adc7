"""Return instructions and calls, as far as a walk of the stack must know them."""

from __future__ import annotations

from typing import Final

_PREFIXES: Final = (b"\xf2", b"\xf3")  # bnd ret, repz ret
# Bytes of call near, indirect, by its addressing: register or memory, with SIB and displacement.
_INDIRECT: Final = (2, 3, 4, 6, 7)


def taken_by_return(code: bytes) -> int | None:
    """Return how many bytes of arguments a return instruction takes off; None: it is another one."""
    code = code[1:] if code.startswith(_PREFIXES) else code
    if code.startswith(b"\xc3"):
        return 0
    return int.from_bytes(code[1:3], "little") if code.startswith(b"\xc2") else None


def ends_with_call(code: bytes) -> bool:
    """Return whether a call can end these bytes, of which there are 7 or more."""
    if code[-5] == 0xE8:
        return True
    return any(code[-size] == 0xFF and code[1 - size] >> 3 & 7 == 2 for size in _INDIRECT)
