"""Keystone, the assembler of x86 and AArch64: one instruction at a time."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any, Final

# Keystone's numbers of errors (keystone/keystone_const.py) -> what is wrong.
_MNEMONIC: Final = 514
_ERRORS: Final = {
    512: "these operands do not fit the instruction",
    513: "the instruction does not exist in this mode of the CPU",
    _MNEMONIC: "there is no such instruction",
    144: "there is neither a register nor a label of that name",
}
INSTALL: Final = "pip install keystone-engine"


class NotAssembledError(Exception):
    """Keystone's reason to refuse an instruction."""

    def __init__(self, message: str, *, unknown: bool = False) -> None:
        super().__init__(message)
        self.unknown = unknown
        """Whether there is no instruction of that name."""


def available() -> bool:
    """Return whether keystone is installed."""
    return importlib.util.find_spec("keystone") is not None


@cache
def _engine(architecture: int, mode: int) -> Any:
    import keystone  # noqa: PLC0415  a large library, which only the assembler needs

    return keystone.Ks(architecture, mode)


def assembled(machine: tuple[int, int], statement: str, address: int) -> bytes:
    """Return the bytes of an instruction.  Raises `NotAssembledError`."""
    from keystone import KsError  # noqa: PLC0415  as above

    try:
        code, _ = _engine(*machine).asm(statement.encode("ascii", "replace"), address, as_bytes=True)
    except KsError as error:
        # The numbers above those of its own operands' errors are LLVM's: an operand is out of range.
        text = _ERRORS.get(error.errno) or (
            "an operand is not of the form, or not in the range, that the instruction takes"
        )
        raise NotAssembledError(text, unknown=error.errno == _MNEMONIC) from None
    if not code:
        raise NotAssembledError("these operands do not fit the instruction")
    return bytes(code)
