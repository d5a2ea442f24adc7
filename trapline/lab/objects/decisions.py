"""The check of code that decides how an instruction is displaced, and that executes it.

Each instruction of a program, or a sample of all encodings, is given to the user's code and to the
package's rules.  Those that the user's code simulates are executed by it and by a CPU; the copies
that it makes of a program's instructions, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import partial
from random import Random
from typing import Final, Protocol

import capstone

from emu import disassembly
from emu.bad_address import BadAddressError
from emu.guest.function import CODE, FunctionFaultError
from emu.isa import Isa
from emu.spelling import counted
from providers import fasttrap
from providers.fidelity import Fidelity
from trapline.lab.objects.displaced import DisplacedCheck, Handler
from trapline.lab.objects.findings import Difference, Failure, ObjectReport
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.incomparable import why_incomparable
from trapline.lab.objects.made_encodings import made_encodings
from trapline.lab.objects.request import Request
from trapline.lab.objects.sweep import DECISIONS, STRIDE, WORDS, Sweep
from trapline.lab.objects.user_code import UserCode

REFUSED, SIMULATED, COPIED = DECISIONS
# The place of the instruction that is examined.
PLACE: Final = CODE + 0x10_0000
PLACE_SIZE: Final = 0x1000
_LONGEST: Final = 16
# The instructions that a decision about a made encoding may take.
_FUZZ_LIMIT: Final = 50_000


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
        """Return whether the code has what executes instructions of this decision."""
        ...

    def ours(self, address: int, instruction: bytes, fidelity: Fidelity) -> tuple[str, str]:
        """Return the decision of the package's rules, and the rule's name.

        The decision is "" if there is none to compare with.
        """
        ...


class DecisionCheck:
    """A check that asks both decoders about instructions, and executes them."""

    def __init__(self, decoder: Displacer, request: Request, report: ObjectReport) -> None:
        self._decoder, self._code, self._request, self._report = decoder, decoder.code, request, report
        self._displaced = DisplacedCheck(decoder.code, decoder, [(PLACE, PLACE_SIZE)], request.states)
        self._privileged = self._repeated = 0
        self._incomparable: Counter[str] = Counter()
        if decoder.code.shadow is not None:
            decoder.code.shadow.watch(decoder.decided_at(), decoder.code.isa.word)
        report.counts = dict.fromkeys(("encodings", REFUSED, SIMULATED, COPIED, "executed"), 0)

    def run(self) -> None:
        """Compare each instruction."""
        for name, offset, instruction in self._instructions():
            self._one(name, offset, instruction)
        if self._request.fuzz:
            self._fuzz()
        self._report.counts["executed"] = self._displaced.tried
        omitted = self._report.omitted
        omitted.extend(
            f"{self._code.name} lacks the functions that execute what is {decision}"
            for decision in (SIMULATED, COPIED)
            if self._report.counts[decision] and not self._decoder.executes(decision)
        )
        if self._privileged:
            omitted.append(f"{self._privileged:,} privileged instructions were not executed")
        if self._repeated:
            omitted.append(f"{counted(self._repeated, 'repeated instruction')} not executed: one takes many steps")
        omitted.extend(
            f"{counted(number, 'instruction')} not executed: {why}" for why, number in self._incomparable.items()
        )
        if self._displaced.trapping:
            states = counted(self._displaced.trapping, "state")
            omitted.append(f"{states} not compared: the instruction sets the trap flag, so the next one traps")
        if self._request.image is None:
            first, count = self._request.first, self._request.sample
            if not self._request.fuzz:
                omitted.append(
                    f"encodings {first:,} to {first + count - 1:,} of 4,294,967,296; --first {first + count} continues"
                )

    def run_sweep(self, sweep: Sweep) -> None:
        """Compare the decisions about the next of all encodings, and one simulation of each rule."""
        sweep.run(self._request.sample, self._request.bar)
        done, groups = sweep.progress.done, list(sweep.groups())
        for group in groups:
            word = group.example
            self._one(f"{word:08x}", 0, word.to_bytes(4, "little"), f"{group.words:,} encodings ")
        self._report.counts["executed"] = self._displaced.tried
        self._report.counts["encodings"] = done
        for decision in DECISIONS:
            self._report.counts[decision] = sum(group.words for group in groups if group.decision == decision)
        for word, what, where in sweep.progress.failures:
            code = word.to_bytes(4, "little")
            self._report.failures.append(Failure(code.hex(), what, where, code))
        if done < WORDS:
            self._report.omitted.append(f"{WORDS - done:,} of {WORDS:,} encodings; the same command continues")

    def _instructions(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield (function, offset, bytes) of the instructions; equal ones once."""
        image, request = self._request.image, self._request
        if image is None and request.fuzz:
            return
        if image is None:
            for number in range(request.first, request.first + request.sample):
                word = number * STRIDE % WORDS
                yield f"{word:08x}", 0, _encoding(self._code.isa, word)
            return
        known: set[bytes] = set()
        port = fasttrap.PORTS[image.isa.name]
        for symbol in image.functions:
            if not symbol.size or (request.function and not fnmatchcase(symbol.name, request.function)):
                continue
            try:
                body = image.code(symbol)
            except BadAddressError:
                continue
            for offset in port.boundaries(body):
                length = image.isa.instruction_length(body[offset : offset + _LONGEST])
                instruction = body[offset : offset + length]
                if instruction and instruction not in known:
                    known.add(instruction)
                    yield symbol.name, offset, instruction

    def _fuzz(self) -> None:
        """Try made encodings, and keep the first difference of each kind and instruction."""
        report, code = self._report, self._code
        pieces = [instruction for _, _, instruction in self._instructions()]
        known: set[tuple[str, ...]] = set()
        limit, code.limit = code.limit, _FUZZ_LIMIT
        try:
            for made in made_encodings(code.isa, pieces, self._request.fuzz):
                before = len(report.differences)
                self._one("made", 0, made)
                for one in report.differences[before:]:
                    key = one.kind, one.where, one.instruction.split()[1]
                    if key in known:
                        report.differences.remove(one)
                    known.add(key)
        finally:
            code.limit = limit
        report.counts["made encodings"] = self._request.fuzz

    def _one(self, name: str, offset: int, instruction: bytes, times: str = "") -> None:
        decoder, counts = self._decoder, self._report.counts
        counts["encodings"] += 1
        if self._code.shadow is not None:
            self._code.shadow.subject = instruction.hex()
            self._code.shadow.forget_writers()
        differ = partial(self._differ, name, offset, instruction)
        try:
            found = decoder.decide(PLACE, instruction)
            counts[found] += 1
            ours, rule = decoder.ours(PLACE, instruction, self._request.fidelity)
            if ours and found != ours:
                differ(
                    f"{times}{found} by theirs, {ours} by ours ({rule})",
                    "decoded",
                    self._code.writer(decoder.decided_at()),
                )
            elif self._is_executed(found, instruction):
                for what, where in self._displaced.differences(PLACE, instruction):
                    differ(what, "simulated" if found == SIMULATED else "displaced", where)
        except FunctionFaultError as error:
            self._fail(instruction, str(error), error.pc)
        except GluePanicError as error:
            self._fail(instruction, str(error), self._code.guest.engine.pc)

    def _is_executed(self, found: str, instruction: bytes) -> bool:
        """Return whether an instruction is executed; counts those that are left out."""
        if not self._decoder.executes(found):
            return False
        why = why_incomparable(self._code.isa, instruction)
        if why:
            self._incomparable[why] += 1
            return False
        if found == COPIED and self._request.sweep is None:
            left_out = _is_privileged(self._code.isa, instruction)
            self._privileged += left_out
            repeats = self._code.isa.repeats
            if repeats is not None and repeats(instruction):
                self._repeated += 1
                return False
            return not left_out
        return found == SIMULATED

    def _fail(self, instruction: bytes, what: str, pc: int) -> None:
        self._report.failures.append(Failure(instruction.hex(), what, self._code.where(pc), instruction))

    def _differ(self, name: str, offset: int, instruction: bytes, what: str, kind: str, where: str) -> None:
        found = disassembly.first(self._code.isa.capstone, instruction, PLACE, self._request.syntax)
        text = f"{instruction.hex()} {found[2] if found else disassembly.NO_INSTRUCTION}"
        self._report.differences.append(Difference(kind, name, offset, "", text, what, where))


def _encoding(isa: Isa, word: int) -> bytes:
    """Return an instruction that begins with a word; what is longer depends on the word."""
    data = word.to_bytes(4, "little")
    longest = fasttrap.PORTS[isa.name].longest
    if longest > len(data):
        data += Random(word).randbytes(longest - len(data))  # noqa: S311  bytes, not secrets
        return data[: isa.instruction_length(data) or len(data)]
    return data


def _is_privileged(isa: Isa, instruction: bytes) -> bool:
    """Return whether an instruction is unknown, or needs a system around the CPU."""
    machine = disassembly.decoder(isa.capstone, detail=True)
    found = next(machine.disasm(instruction, 0), None)
    if found is None:
        return True
    return bool({capstone.CS_GRP_PRIVILEGE, capstone.CS_GRP_INT, capstone.CS_GRP_IRET} & set(found.groups))
