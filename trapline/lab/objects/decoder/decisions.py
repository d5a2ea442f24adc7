"""The check of code that decides how an instruction is displaced, and that executes it.

Each instruction of a program, or a sample of all encodings, is given to the user's code and to the
package's rules.  Those that the user's code simulates are executed by it and by a CPU; the copies
that it makes of a program's instructions, too.

A fuzzer's encodings are instructions with changes, and random bytes.  An instruction with a finding
is shrunk: bytes are removed and bits cleared as long as the finding stays.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from random import Random
from typing import Final

from emu.isa import Isa
from emu.support.did_you_mean import counted
from emu.support.words import BadAddressError
from providers import fasttrap
from trapline.lab.objects.decoder.trial import ACCESS, FAILURE, PRIVILEGED, REPEATED, Displacer, Finding, Trial, Trier
from trapline.lab.objects.decoder.word_sweep import STRIDE, WORDS
from trapline.lab.objects.findings import NO_OFFSET, Difference, Failure, ObjectReport
from trapline.lab.objects.request import Request
from trapline.lab.objects.verdict import COPIED, REFUSED, SIMULATED

_LONGEST: Final = 16
# The instructions that a decision about a made encoding may take.
_FUZZ_LIMIT: Final = 50_000
_MADE: Final = "made"


class DecisionCheck:
    """A check that asks both decoders about instructions, and executes them."""

    def __init__(self, decoder: Displacer, request: Request, report: ObjectReport) -> None:
        self._decoder, self._code, self._request, self._report = decoder, decoder.code, request, report
        self._trier = Trier(decoder, request)
        self._left_out: Counter[str] = Counter()
        self._shrinking = 0
        """The number of instructions that were executed only to shrink findings."""
        report.counts = dict.fromkeys(("encodings", REFUSED, SIMULATED, COPIED, "executed"), 0)

    def run(self) -> None:
        """Compare each instruction."""
        for name, offset, instruction in self._instructions():
            self.one(name, offset, instruction)
        if self._request.fuzz:
            self._fuzz()

    def finish(self) -> None:
        """Say how many were executed, and what was left out."""
        self._report.counts["executed"] = self._trier.displaced.tried - self._shrinking
        omitted = self._report.omitted
        omitted.extend(
            f"{self._code.name} lacks the functions that execute what is {decision}"
            for decision in (SIMULATED, COPIED)
            if self._report.counts[decision] and not self._decoder.executes(decision)
        )
        for why, number in self._left_out.items():
            if why == PRIVILEGED:
                omitted.append(f"{number:,} privileged instructions were not executed")
            elif why == REPEATED:
                omitted.append(f"{counted(number, 'repeated instruction')} not executed: one takes many steps")
            else:
                omitted.append(f"{counted(number, 'instruction')} not executed: {why}")
        if self._trier.displaced.trapping:
            states = counted(self._trier.displaced.trapping, "state")
            omitted.append(f"{states} not compared: the instruction sets the trap flag, so the next one traps")
        request = self._request
        if request.image is None and request.sweep is None and not request.fuzz and request.given is None:
            first, count = request.first, request.sample
            omitted.append(
                f"encodings {first:,} to {first + count - 1:,} of 4,294,967,296; --first {first + count} continues"
            )

    def _instructions(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield (function, offset, bytes) of the instructions; equal ones once."""
        image, request = self._request.image, self._request
        if request.given is not None:
            yield "given", NO_OFFSET, request.given
            return
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

    def one(self, name: str, offset: int, instruction: bytes, times: str = "") -> None:
        """Compare an instruction; `times` begins the sentence about different decisions."""
        for finding in self._counted(instruction).findings:
            if finding.kind == FAILURE:
                self._fail(instruction, finding)
            elif finding.kind != ACCESS:
                begins = times if finding.kind == "decoded" else ""
                self.differ(
                    name, offset, instruction, begins + finding.what, finding.kind, finding.where, finding.cause
                )

    def differ(
        self, name: str, offset: int, instruction: bytes, what: str, kind: str, where: str = "", row: str = ""
    ) -> None:
        """Add a difference to the report."""
        text = self._trier.text(instruction)
        self._report.differences.append(Difference(kind, name, offset, "", text, what, where, row or what))

    def _counted(self, instruction: bytes) -> Trial:
        """Try an instruction, and count it."""
        trial, counts = self._trier.attempt(instruction), self._report.counts
        counts["encodings"] += 1
        if trial.decision:
            counts[trial.decision] += 1
        if trial.left_out:
            self._left_out[trial.left_out] += 1
        return trial

    def _fail(self, instruction: bytes, finding: Finding, again: str = "") -> None:
        text = self._trier.text(instruction)
        self._report.failures.append(Failure(text, finding.what + again, finding.where, instruction))

    # -- made encodings

    def _fuzz(self) -> None:
        """Try made encodings, and report the first finding of each cause, as short as it can be."""
        report, code = self._report, self._code
        pieces = [instruction for _, _, instruction in self._instructions()]
        known: set[tuple[str, str, str]] = set()
        limit, code.limit = code.limit, _FUZZ_LIMIT
        try:
            for made in made_encodings(code.isa, pieces, self._request.fuzz):
                for finding in self._counted(made).findings:
                    if finding.key not in known:
                        known.add(finding.key)
                        self._report_made(*self._shrunk(made, finding))
        finally:
            code.limit = limit
        report.counts["made encodings"] = self._request.fuzz

    def _shrunk(self, made: bytes, finding: Finding) -> tuple[bytes, Finding]:
        """Return the smallest instruction with a finding of the same cause, and that finding."""
        trier, displaced = self._trier, self._trier.displaced
        before, trapping, counts = displaced.tried, displaced.trapping, self._access_counts()
        found = {made: finding}

        def holds(candidate: bytes) -> bool:
            same = next((one for one in trier.attempt(candidate).findings if one.key == finding.key), None)
            if same is not None:
                found[candidate] = same
            return same is not None

        smallest = shrunk(made, holds, one_size=self._code.isa.instruction_alignment > 1)
        self._shrinking += displaced.tried - before
        displaced.trapping = trapping
        self._restore_access_counts(counts)
        return smallest, found[smallest]

    def _report_made(self, instruction: bytes, finding: Finding) -> None:
        """Report a finding about a made encoding."""
        again = f"; again by --bytes {instruction.hex()}"
        if finding.kind == FAILURE:
            self._fail(instruction, finding, again)
        elif finding.kind != ACCESS:
            self.differ(_MADE, NO_OFFSET, instruction, finding.what + again, finding.kind, finding.where, finding.cause)
        elif self._code.shadow is not None:
            for mistake in self._code.shadow.mistakes.values():
                if (mistake.what, self._code.where(mistake.pc)) == (finding.what, finding.where):
                    mistake.subject = f"{self._trier.text(instruction)}{again}"

    def _access_counts(self) -> dict[tuple[str, int], int]:
        shadow = self._code.shadow
        return {} if shadow is None else {key: one.count for key, one in shadow.mistakes.items()}

    def _restore_access_counts(self, counts: dict[tuple[str, int], int]) -> None:
        """Forget the bad accesses of tries for shorter instructions."""
        shadow = self._code.shadow
        if shadow is not None:
            shadow.mistakes = {
                key: replace(one, count=counts[key]) for key, one in shadow.mistakes.items() if key in counts
            }


def _encoding(isa: Isa, word: int) -> bytes:
    """Return an instruction that begins with a word; what is longer depends on the word."""
    data = word.to_bytes(4, "little")
    longest = fasttrap.PORTS[isa.name].longest
    if longest > len(data):
        data += Random(word).randbytes(longest - len(data))  # noqa: S311  bytes, not secrets
        return data[: isa.instruction_length(data) or len(data)]
    return data


# Tries after which the shortest instruction until then is taken.
_MOST: Final = 400


def shrunk(data: bytes, holds: Callable[[bytes], bool], *, one_size: bool) -> bytes:
    """Return the smallest bytes for which a condition holds, as far as single steps lead.

    It holds for `data`.  `one_size`: only bits are cleared, for instructions whose size is fixed.
    """
    tries = 0
    smaller = True
    while smaller:
        smaller = False
        for candidate in _steps(data, one_size=one_size):
            tries += 1
            if tries > _MOST:
                return data
            if holds(candidate):
                data, smaller = candidate, True
                break
    return data


def _steps(data: bytes, *, one_size: bool) -> Iterator[bytes]:
    """Yield smaller bytes, those that save most first."""
    if not one_size:
        for at in range(len(data) - 1, -1, -1):
            if len(data) > 1:
                yield data[:at] + data[at + 1 :]
    for at in range(len(data) - 1, -1, -1):
        if data[at]:
            yield data[:at] + b"\0" + data[at + 1 :]
    for at in range(len(data) - 1, -1, -1):
        for bit in range(7, -1, -1):
            less = data[at] & ~(1 << bit)
            if less not in {data[at], 0}:
                yield data[:at] + bytes((less,)) + data[at + 1 :]


_SEED: Final = 20
# One encoding of so many is random bytes.
_RANDOM: Final = 4


def made_encodings(isa: Isa, pieces: Sequence[bytes], count: int) -> Iterator[bytes]:
    """Yield so many encodings; `pieces` are the instructions that are changed."""
    random = Random(_SEED)  # noqa: S311  encodings, not secrets
    longest = fasttrap.PORTS[isa.name].longest
    for _ in range(count):
        piece = random.choice(pieces) if pieces and random.randrange(_RANDOM) else random.randbytes(longest)
        data = _changed(random, piece, longest, one_size=isa.instruction_alignment > 1)
        yield data[: isa.instruction_length(data) or len(data)]


def _changed(random: Random, piece: bytes, longest: int, *, one_size: bool) -> bytes:
    """Return an instruction with one to three changes.

    A bit is another one; and if instructions have many sizes, a byte is inserted or removed.
    """
    data = bytearray(piece)
    for _ in range(random.randint(1, 3)):
        place = random.randrange(len(data))
        change = 0 if one_size else random.randrange(4)
        if change == 1:
            data.insert(place, random.randrange(256))
        elif change == 2 and len(data) > 1:
            del data[place]
        elif change:
            data[place] = random.randrange(256)
        else:
            data[place] ^= 1 << random.randrange(8)
    return bytes(data[:longest]) if one_size else bytes(data + random.randbytes(longest))[:longest]
