"""Instructions whose execution says nothing about the user's code.

The emulated CPU does something else with them than a CPU, or their result depends on more than the
state.  docs/unicorn.md describes the first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from emu.isa import Isa, disassembly

_HALF: Final = 0x8000


def _always(_operands: str) -> bool:
    return True


def _takes_off_much(operands: str) -> bool:
    """Return whether the operand of a ret is a number of bytes that looks negative."""
    is_number = operands.lstrip("-")[:1].isdigit()  # AArch64's names a register
    return is_number and bool(int(operands, 0) & _HALF)


_UNDETERMINED: Final = "cpuid, rdtsc, rdtscp, rdrand and rdseed read what is in no state"
_SIGNED: Final = "ret with 0x8000 bytes or more: the emulated CPU takes the number as signed"
_NOT_REFUSED: Final = "c.unimp: the emulated CPU stays at it without an exception"
# Mnemonic -> which operands, and why.
_REASONS: Final[Mapping[str, tuple[Callable[[str], bool], str]]] = {
    **dict.fromkeys(("cpuid", "rdtsc", "rdtscp", "rdrand", "rdseed"), (_always, _UNDETERMINED)),
    **dict.fromkeys(("ret", "retf", "retfq"), (_takes_off_much, _SIGNED)),
    "c.unimp": (_always, _NOT_REFUSED),
}


def why_incomparable(isa: Isa, instruction: bytes) -> str:
    """Return why an instruction is not executed, "" if it is."""
    machine = disassembly.decoder(isa.capstone)
    found = next(machine.disasm_lite(instruction, 0), None)
    if found is None:
        return ""
    _address, _size, mnemonic, operands = found
    test, why = _REASONS.get(mnemonic.split()[-1], (None, ""))
    return why if test is not None and test(operands) else ""
