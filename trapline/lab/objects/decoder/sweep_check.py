"""The check of a decoder by a sweep: what the sweep has counted becomes a report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from emu.support.did_you_mean import counted
from trapline.lab.check.encodings.x86_space import DEFAULT_BOUND, OMITTED, Space
from trapline.lab.objects.decoder.byte_sweep import ByteSweep, Decider, Group
from trapline.lab.objects.decoder.decisions import DecisionCheck
from trapline.lab.objects.decoder.trial import Displacer
from trapline.lab.objects.decoder.word_sweep import WORDS, Decoder, Sweep
from trapline.lab.objects.findings import NO_OFFSET, Failure, ObjectReport
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.verdict import DECISIONS, REFUSED, SIMULATED

_OPCODES_SHOWN: Final = 4
# The rule of all tables for bytes that do not decode, in small letters.
_MALFORMED: Final = "malformed"
# The classes of prefixes that make the best examples.
_FEW: Final = frozenset({"no prefix", "REX"})


class Swept(Displacer, Decider, Protocol):
    """A glue whose decoder a sweep asks: about words (`decoder`), or about bytes (`question`)."""

    def decoder(self) -> Decoder:
        """Return how a sweep of words asks the decoder.  Raises `RequestError`: no table."""
        ...


def examine(glue: Swept, request: Request, report: ObjectReport) -> None:
    """Compare the decisions about a program's instructions, a sample, or all encodings.

    Raises `RequestError`.
    """
    check = DecisionCheck(glue, request, report)
    if request.sweep is None:
        check.run()
    elif glue.code.isa.registers.link:
        if request.bound is not None:
            raise RequestError(f"--bound is for prefixes of x86; a sweep of {glue.code.isa.name} has all words")
        _words(check, Sweep(glue.code, glue.decoder(), request.sweep), request, report)
    else:
        _bytes(check, glue, request.sweep, request, report)
    check.finish()


def _words(check: DecisionCheck, sweep: Sweep, request: Request, report: ObjectReport) -> None:
    """Compare the decisions about the next of all words, and one simulation of each rule."""
    sweep.run(request.sample, request.bar)
    done, groups = sweep.progress.done, list(sweep.groups())
    for group in groups:
        word = group.example
        check.one(f"{word:08x}", NO_OFFSET, word.to_bytes(4, "little"), f"{group.words:,} encodings ")
    report.counts["encodings"] = done
    for decision in DECISIONS:
        report.counts[decision] = sum(group.words for group in groups if group.decision == decision)
    for word, what, where in sweep.progress.failures:
        code = word.to_bytes(4, "little")
        report.failures.append(Failure(code.hex(), what, where, code))
    if done < WORDS:
        report.omitted.append(f"{WORDS - done:,} of {WORDS:,} encodings; the same command continues")


# -- instructions of x86


class Kind(NamedTuple):
    """Encodings about which two decoders differ alike, whatever their opcodes are."""

    form: str
    theirs: str
    ours: str
    rule: str


def kinds(groups: Sequence[Group]) -> Iterator[tuple[Kind, list[Group]]]:
    """Yield the groups that differ, by their kind.

    The largest kind comes first, but those about bytes that our rules refuse as malformed later,
    and those about errors of what both refuse last.
    """
    found: dict[Kind, list[Group]] = {}
    for group in groups:
        if group.ours:
            found.setdefault(Kind(group.form, group.theirs, group.ours, group.rule), []).append(group)
    yield from sorted(found.items(), key=lambda one: (_rank(one[0]), -sum(group.encodings for group in one[1])))


def _rank(kind: Kind) -> int:
    """Return how late a kind is reported."""
    if kind.theirs.startswith(REFUSED) and kind.ours.startswith(REFUSED):
        return 2
    return int(kind.rule.lower() == _MALFORMED)


def _bytes(check: DecisionCheck, glue: Decider, kept: Path, request: Request, report: ObjectReport) -> None:
    """Compare the decisions about the next encodings, and a simulation of each rule and map."""
    bound = DEFAULT_BOUND if request.bound is None else request.bound
    space = Space(glue.code.isa.name, bound)
    sweep = ByteSweep(glue, space, request.fidelity, kept)
    sweep.run(request.sample, request.bar)
    groups = list(sweep.groups())
    isa = glue.code.isa
    for group in groups:
        if group.ours or group.theirs != SIMULATED:
            continue
        code = bytes.fromhex(group.example)
        check.one(group.form, NO_OFFSET, code[: isa.instruction_length(code)], f"{group.encodings:,} encodings ")
    for kind, parts in kinds(groups):
        code = bytes.fromhex(
            min((group.prefixes not in _FEW, len(group.prefixes), group.example) for group in parts)[2]
        )
        what = f"{_classes(parts)}: {kind.theirs} by theirs, {kind.ours} by ours ({kind.rule})"
        code = code[: isa.instruction_length(code) or len(code)]
        check.differ(kind.form, NO_OFFSET, code, what, "decoded", row=f"{kind.form}, {what}")
    report.counts["encodings"] = sweep.progress.done
    for decision in DECISIONS:
        report.counts[decision] = sum(group.encodings for group in groups if group.theirs.startswith(decision))
    report.counts["decided differently"] = sum(group.encodings for group in groups if group.ours)
    for text, what, where in sweep.progress.failures:
        report.failures.append(Failure(text, what, where, bytes.fromhex(text)))
    if sweep.progress.failed > len(sweep.progress.failures):
        report.omitted.append(f"of {sweep.progress.failed:,} failures the first ones are listed")
    report.notes.append(f"enumerated: {space.text()}")
    left = len(space) - sweep.progress.done
    if left:
        report.omitted.append(f"{left:,} of {len(space):,} encodings; the same command continues")
    report.omitted.append(f"encodings with more prefixes than {bound} (--bound)")
    report.omitted.extend(OMITTED)


def _classes(groups: Sequence[Group]) -> str:
    """Return the number of encodings, their opcodes, and the classes of their prefixes."""
    number = sum(group.encodings for group in groups)
    opcodes = sorted({group.opcode for group in groups})
    ranges = list(_ranges(opcodes))
    more = "" if len(ranges) <= _OPCODES_SHOWN else f" and {len(ranges) - _OPCODES_SHOWN} more"
    shown = ", ".join(ranges[:_OPCODES_SHOWN])
    noun = "opcode" if len(opcodes) == 1 else "opcodes"
    prefixes = "; ".join(dict.fromkeys(group.prefixes for group in groups))
    return f"{counted(number, 'encoding')} ({noun} {shown}{more}; {prefixes})"


def _ranges(numbers: Sequence[int]) -> Iterator[str]:
    """Yield the ranges of sorted numbers, in hexadecimal digits."""
    starts = [0, *(at for at, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1), len(numbers)]
    for start, end in pairwise(starts):
        first, last = numbers[start], numbers[end - 1]
        yield f"{first:02x}" if first == last else f"{first:02x}-{last:02x}"
