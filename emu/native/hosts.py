"""The hosts that there is machine code for.

The relocations of their object code are those of the ISA (`emu/isa/<isa>/relocations.py`).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from emu.isa import isa_of_machine
from emu.isa.relocations import Relocations, relocations_of


class Host(NamedTuple):
    """One kind of host, besides its relocations."""

    far_jump: bytes = b""
    """Jumps to the address that follows it; empty: nothing needs that."""
    jumps: frozenset[int] = frozenset()
    """The relocations whose target may be replaced by a jump to it, if it is too far."""
    coherent: bool = True
    """Whether the CPU executes what was written without being told."""


# By e_machine: EM_X86_64, EM_AARCH64.
HOSTS: Final = {
    62: Host(),
    183: Host(
        far_jump=bytes.fromhex("50000058 00021fd6"),  # ldr x16,[pc,#8]    br x16
        jumps=frozenset({282, 283}),  # R_AARCH64_JUMP26, R_AARCH64_CALL26
        coherent=False,
    ),
}


def host_relocations(machine: int) -> Relocations:
    """Return the relocations of object code for a host, by its e_machine."""
    isa = isa_of_machine(machine)
    assert isa is not None
    return relocations_of(isa)
