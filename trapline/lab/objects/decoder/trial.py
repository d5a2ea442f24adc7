"""One instruction, given to the user's decoder, to the package's rules, and to a CPU.

A try counts nothing and reports nothing, so that it can be repeated: a finding is shrunk by tries
of shorter instructions.

Some instructions say nothing about the user's code: the emulated CPU does something else with them
than a CPU (docs/unicorn.md), or their result depends on more than the state.  They are not
executed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

import capstone

from emu.guest.function import CODE, FunctionFaultError
from emu.isa import Isa, disassembly
from providers.fidelity import Fidelity
from trapline.lab.objects.decoder.displaced import DisplacedCheck, Handler
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.request import Request
from trapline.lab.objects.shadow import Shadow
from trapline.lab.objects.user_code import UserCode
from trapline.lab.objects.verdict import COPIED, REFUSED, SIMULATED

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


# The place of the instruction that is examined.
PLACE: Final = CODE + 0x10_0000
PLACE_SIZE: Final = 0x1000
# Why an instruction was not executed, if it is not incomparable (`incomparable.py`).
PRIVILEGED: Final = "privileged"
REPEATED: Final = "repeated"
# The kinds of findings that are not differences.
FAILURE: Final = "failure"
ACCESS: Final = "access"


class Displacer(Handler, Protocol):
    """A glue whose code decides about instructions."""

    code: UserCode

    def decide(self, address: int, instruction: bytes) -> str:
        """Return `REFUSED`, `SIMULATED` or `COPIED`.

        Raises `FunctionFaultError` and `GluePanicError`.
        """
        ...

    def decided_at(self) -> int:
        """Return the address of the member that holds the last decision."""
        ...

    def executes(self, decision: str) -> bool:
        """Return whether the code has what executes instructions of a decision, not `REFUSED`."""
        ...

    def ours(self, address: int, instruction: bytes, fidelity: Fidelity) -> tuple[str, str]:
        """Return the decision of the package's rules, and the rule's name.

        The decision is "" if there is none to compare with.
        """
        ...


class Finding(NamedTuple):
    """What is wrong about an instruction."""

    kind: str
    """ "decoded", "simulated" or "displaced", FAILURE or ACCESS."""
    what: str
    where: str
    """The place in the user's code, "" if it is not known."""
    cause: str
    """What findings of one cause have in common, besides kind and place."""

    @property
    def key(self) -> tuple[str, str, str]:
        """What is the same for all findings of one cause."""
        return self.kind, self.where, self.cause


class Trial(NamedTuple):
    """The result of one try."""

    decision: str
    """The decision of the code under test; "" if it has failed."""
    findings: tuple[Finding, ...]
    left_out: str = ""
    """Why the instruction was not executed, though the code has what executes it."""


class Trier:
    """Tries instructions."""

    def __init__(self, decoder: Displacer, request: Request) -> None:
        self._decoder, self._code, self._request = decoder, decoder.code, request
        self.displaced = DisplacedCheck(decoder.code, decoder, [(PLACE, PLACE_SIZE)], request.states)
        if decoder.code.shadow is not None:
            decoder.code.shadow.watch(decoder.decided_at(), decoder.code.isa.word)

    def attempt(self, instruction: bytes) -> Trial:
        """Return what a try of an instruction gives."""
        shadow = self._code.shadow
        before = {}
        if shadow is not None:
            shadow.subject = instruction.hex()
            shadow.forget_writers()
            before = {key: one.count for key, one in shadow.mistakes.items()}
        decision, left_out, found = "", "", list[Finding]()
        try:
            decision = self._decoder.decide(PLACE, instruction)
            ours, rule = self._decoder.ours(PLACE, instruction, self._request.fidelity)
            if ours and decision != ours:
                what = f"{decision} by theirs, {ours} by ours ({rule})"
                found.append(Finding("decoded", what, self._code.writer(self._decoder.decided_at()), what))
            elif decision != REFUSED and self._decoder.executes(decision):
                left_out = self._why_not(decision, instruction)
                if not left_out and (decision == SIMULATED or self._request.sweep is None):
                    found += self._executed(decision, instruction)
        except FunctionFaultError as error:
            found.append(Finding(FAILURE, str(error), self._code.where(error.pc), ""))
        except GluePanicError as error:
            found.append(Finding(FAILURE, str(error), self._code.where(self._code.guest.engine.pc), ""))
        if shadow is not None:
            found += self._accesses(shadow, before)
        return Trial(decision, tuple(found), left_out)

    def text(self, instruction: bytes) -> str:
        """Return the bytes of an instruction and its disassembly."""
        found = disassembly.first(self._code.isa, instruction, PLACE, self._request.syntax)
        return f"{instruction.hex()} {found[2] if found else disassembly.NO_INSTRUCTION}"

    def _executed(self, decision: str, instruction: bytes) -> Iterator[Finding]:
        """Yield the differences from a CPU.  Raises what `decide` raises."""
        kind = "simulated" if decision == SIMULATED else "displaced"
        mnemonic = self.text(instruction).split()[1]
        for what, where in self.displaced.differences(PLACE, instruction, again=True):
            yield Finding(kind, what, where, mnemonic)

    def _why_not(self, decision: str, instruction: bytes) -> str:
        """Return why an instruction is not executed, "" if it is."""
        isa = self._code.isa
        why = why_incomparable(isa, instruction)
        if why or decision != COPIED or self._request.sweep is not None:
            return why
        if isa.repetition(instruction) is not None:
            return REPEATED
        return PRIVILEGED if _is_privileged(isa, instruction) else ""

    def _accesses(self, shadow: Shadow, before: dict[tuple[str, int], int]) -> Iterator[Finding]:
        """Yield the bad accesses since then."""
        for key, mistake in shadow.mistakes.items():
            if mistake.count > before.get(key, 0):
                yield Finding(ACCESS, mistake.what, self._code.where(mistake.pc), "")


def _is_privileged(isa: Isa, instruction: bytes) -> bool:
    """Return whether an instruction is unknown, or needs a system around the CPU."""
    machine = disassembly.decoder(isa.capstone, detail=True)
    found = next(machine.disasm(instruction, 0), None)
    if found is None:
        return True
    return bool({capstone.CS_GRP_PRIVILEGE, capstone.CS_GRP_INT, capstone.CS_GRP_IRET} & set(found.groups))
