"""Programs of a few instructions, which must end as the host's CPU or qemu-user makes them end."""

from __future__ import annotations

from random import Random
from typing import Final

from emu.isa import ISAS
from tests.fuzz.case import Fuzzer
from tests.fuzz.judge.judges import command
from tests.fuzz.judge.programs import KINDS, differences, programs

_PROGRAMS: Final = 64


class Judged(Fuzzer):
    """Programs whose results are compared with another CPU's, 64 in a case."""

    name = "judged"
    seconds = 20.0
    quick = 24
    compared = 4
    whole = 1_000_000 // _PROGRAMS

    def make(self, random: Random) -> bytes:
        """Make an ISA's number, a kind's number, and a seed."""
        return bytes((random.randrange(len(ISAS)), random.randrange(len(KINDS)))) + random.randbytes(4)

    def run(self, case: bytes) -> str:
        """Execute the programs on both, and compare."""
        isa, kind = list(ISAS)[case[0]], list(KINDS)[case[1]]
        if command(isa) is None:
            return f"{isa} not judged"
        found = list(differences(isa, programs(isa, kind, int.from_bytes(case[2:], "little"), _PROGRAMS)))
        assert not found, f"{kind}: {found[0]}, and {len(found) - 1} others"
        return f"{isa} {kind}"
