"""The jump that a hot-patched site becomes, ISA by ISA, and when there cannot be one.

Source: FreeBSD sys/<machine>/<machine>/sdt_machdep.c (sdt_tracepoint_valid, sdt_tracepoint_patch).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Jump:
    """How one ISA patches a site."""

    nop: bytes
    """What is there at rest."""
    alignment: int
    """Of site and target, in bytes."""
    reach: int
    """How far the target may be from where the distance is counted, in bytes."""
    origin: int
    """The distance is counted from so many bytes behind the site."""
    encode: Callable[[int], bytes]
    """Makes the jump over a distance."""

    def refusal(self, site: int, target: int) -> str | None:
        """Return why a site cannot be patched, None if it can."""
        if site == target:
            return "it would jump to itself"
        if site % self.alignment or target % self.alignment:
            return f"site and target must be multiples of {self.alignment}"
        if abs(target - site - self.origin) > self.reach:
            return f"the target is {target - site:+#x} away, more than {self.reach:#x}"
        return None

    def patch(self, site: int, target: int) -> bytes:
        """Return the bytes of the jump from a site to its target."""
        return self.encode(target - site - self.origin)


def _x86(distance: int) -> bytes:
    return b"\xe9" + distance.to_bytes(4, "little", signed=True)


def _aarch64(distance: int) -> bytes:
    return (0x14000000 | distance >> 2 & 0x3FFFFFF).to_bytes(4, "little")


def _riscv(distance: int) -> bytes:
    """Encode jal x0: the immediate is imm[20|10:1|11|19:12]."""
    word = 0x6F | (distance >> 20 & 1) << 31 | (distance >> 1 & 0x3FF) << 21
    return (word | (distance >> 11 & 1) << 20 | (distance >> 12 & 0xFF) << 12).to_bytes(4, "little")


# By the ISA's name.  AArch64's 2^26 bytes are what FreeBSD checks; the instruction reaches twice as far.
JUMPS: Final = {
    "x86_64": Jump(b"\x90" * 5, alignment=1, reach=1 << 31, origin=5, encode=_x86),
    "i386": Jump(b"\x90" * 5, alignment=1, reach=1 << 31, origin=5, encode=_x86),
    "aarch64": Jump((0xD503201F).to_bytes(4, "little"), alignment=4, reach=1 << 26, origin=0, encode=_aarch64),
    "riscv64": Jump((0x13).to_bytes(4, "little"), alignment=2, reach=1 << 19, origin=0, encode=_riscv),
}
