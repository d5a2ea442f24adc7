"""The function guest with random code, and the check of such code: as probes displace it, it does the same."""

from __future__ import annotations

from random import Random
from typing import Final

from emu.displaced.decision import Code
from emu.guest.function import FunctionFaultError, FunctionGuest
from emu.isa import ISAS
from providers.fidelity import Fidelity
from tests.fuzz.case import Fuzzer
from tests.fuzz.inputs.instructions import Instructions
from trapline.lab.check.runner.assertion import assert_same_with_probe
from trapline.lab.sites.instructions import PROVIDERS

# Of the cases, those that are checked as well: it takes ten times as long.
_CHECKED: Final = 0.1
_LIMIT: Final = 20_000
_STATES: Final = 2
_LONGEST: Final = 16
_DIVERGES: Final = "is not the same with a probe"


class Functions(Fuzzer):
    """Random code as a function."""

    name = "functions"
    expected = (FunctionFaultError,)
    seconds = 20.0
    quick = 50
    compared = 5

    def __init__(self) -> None:
        self._code = Instructions()

    def warm(self) -> None:
        """Call one function on each ISA."""
        super().warm()
        for isa in ISAS.values():
            for accelerated in (False, True):
                FunctionGuest(isa, isa.traps.wait, accelerated=accelerated)

    def make(self, random: Random) -> bytes:
        """Make whether it is checked, an ISA's number, and code."""
        checked = random.random() < _CHECKED
        number, _, *code = self._code.make(random)
        return bytes((checked, number, *code))

    def run(self, case: bytes) -> str:
        """Decide about each instruction, call the code, and check it."""
        checked, number, code = case[0], case[1], case[2:]
        isa = list(ISAS.values())[number]
        for treat in (treat for name, treat in PROVIDERS.items() if name != "kinst" or isa.name != "i386"):
            for fidelity in Fidelity:
                for offset in range(0, len(code), isa.instruction_alignment):
                    treat(isa, Code(code[offset : offset + _LONGEST], offset, code[:offset]), fidelity)
        if checked:
            try:
                assert_same_with_probe(code, 1, 2, 3, isa=isa, states=_STATES)
            except AssertionError as error:
                if _DIVERGES not in str(error):
                    raise
                return f"diverges: {error}"
            return "is the same"
        guest = FunctionGuest(isa, code, accelerated=False)
        data = guest.allocate(64)
        return f"returns: {guest.call(data, 7, data + 8, limit=_LIMIT):#x}"
