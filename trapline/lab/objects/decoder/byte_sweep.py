"""A decoder of x86 asked about every encoding of an enumeration, and compared with our rules.

The decoder runs in the emulator, in batches; our rules are Python's.  What has been counted is kept
in a file, so that a sweep goes on where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

import emu.isa
import providers
from providers.fidelity import Fidelity
from trapline.lab.check.encodings.x86_space import Encoding, Space
from trapline.lab.objects.decoder.batches import Answer, Batches, Question
from trapline.lab.objects.decoder.word_sweep import loop_object
from trapline.lab.objects.kept import read, save
from trapline.lab.objects.request import Bar
from trapline.lab.objects.user_code import UserCode
from trapline.lab.objects.verdict import Verdict

# Encodings that the decoder is asked about in one call, and those between two writings of the file.
_BATCH: Final = 1 << 14
_PART: Final = 1 << 16
_MOST_FAILURES: Final = 1000


class Decider(Protocol):
    """A glue whose decoder can be asked in batches."""

    code: UserCode

    def question(self) -> Question:
        """Return how the decoder is asked."""
        ...

    def verdict(self, answer: Answer) -> Verdict:
        """Return what an answer of the decoder means."""
        ...

    def our_verdict(self, code: bytes, fidelity: Fidelity) -> tuple[Verdict | None, str]:
        """Return the decision of the package's rules about the instruction that begins `code`.

        None: there is none to compare with.  The text is the rule's name.
        """
        ...


class Group(NamedTuple):
    """Encodings of one class that were decided alike."""

    form: str
    """The opcode map."""
    opcode: int
    prefixes: str
    """The class of the prefixes."""
    theirs: str
    ours: str
    """"" if both agree; then `prefixes` is "", and `opcode` 0."""
    rule: str
    encodings: int
    example: str
    """The first encoding, in hexadecimal digits."""


@dataclass
class Progress:
    """What has been decided."""

    digest: str
    """Of the objects, the loop, the rules and the enumeration."""
    done: int = 0
    groups: list[Group] = field(default_factory=list)
    failures: list[tuple[str, str, str]] = field(default_factory=list)
    """(encoding, what happened, where)."""
    failed: int = 0
    """The number of failures, of which `failures` has the first ones."""


_Key = tuple[str, int, str, str, str, str]


class ByteSweep:
    """The sweep of one decoder; `code` is linked with `word_sweep.loop_object`.

    `kept`: the file that has the progress, and is made if it is not there; or the folder for a file
    of its own.  Raises `RequestError` if it is the file of other objects or rules.
    """

    def __init__(self, decider: Decider, space: Space, fidelity: Fidelity, kept: Path) -> None:
        self._decider, self.space, self._fidelity = decider, space, fidelity
        code = decider.code
        self._batches = Batches(code, decider.question(), _BATCH)
        digest = hashlib.sha256(loop_object(code.isa).read_bytes())
        for one in code.objects:
            digest.update(one.path.read_bytes())
        digest.update(repr((space.text(), fidelity.value, _source())).encode())
        self.progress = Progress(digest.hexdigest()[:16])
        self._kept = kept / f"sweep-{self.progress.digest}.json" if kept.is_dir() else kept
        if self._kept.exists():
            self.progress = read(self._kept, self.progress.digest, _progress)
        self._counts: dict[_Key, list[Any]] = {
            (one.form, one.opcode, one.prefixes, one.theirs, one.ours, one.rule): [one.encodings, one.example]
            for one in self.progress.groups
        }
        # Decoders give few different answers.
        self._verdict: Callable[[bytes], Verdict] = lru_cache(1 << 12)(
            lambda raw: decider.verdict(self._batches.answer(raw))
        )
        self._against = cache(_against)

    def run(self, most: int, bar: Bar | None = None) -> None:
        """Decide about the next encodings, at most so many.  Raises `RequestError`."""
        ends = min(len(self.space), self.progress.done + most)
        if bar is not None:
            bar.begin(ends, self.progress.done)
        while self.progress.done < ends:
            before = self.progress.done
            last = min(ends, before + _PART)
            while self.progress.done < last:
                first = self.progress.done
                count = min(_BATCH, last - first)
                self._decide([self.space.encoding(number) for number in range(first, first + count)])
                self.progress.done += count
            self.progress.groups = list(self.groups())
            save(self._kept, asdict(self.progress) | {"groups": [list(one) for one in self.progress.groups]})
            if bar is not None:
                bar.advance(self.progress.done - before)

    def groups(self) -> Iterator[Group]:
        """Yield the groups of what has been decided."""
        for key, (count, example) in self._counts.items():
            yield Group(*key, count, example)

    def _decide(self, encodings: Sequence[Encoding]) -> None:
        answers = self._batches.ask([one.code for one in encodings])
        failures = {at: (what, where) for at, what, where in self._batches.failures}
        ours, fidelity, verdict, against = self._decider.our_verdict, self._fidelity, self._verdict, self._against
        counts = self._counts
        for at, (one, raw) in enumerate(zip(encodings, answers, strict=True)):
            if at in failures:
                self._fail(one, *failures[at])
                continue
            mine, rule = ours(one.code, fidelity)
            texts = against(verdict(raw), mine)
            opcode, prefixes = (one.opcode, one.prefixes) if texts[1] else (0, "")
            key = one.form, opcode, prefixes, *texts, rule
            known = counts.get(key)
            if known is None:
                counts[key] = [1, one.code.hex()]
            else:
                known[0] += 1

    def _fail(self, one: Encoding, what: str, where: str) -> None:
        self.progress.failed += 1
        if len(self.progress.failures) < _MOST_FAILURES:
            self.progress.failures.append((one.code.hex(), what, where))


def _against(theirs: Verdict, ours: Verdict | None) -> tuple[str, str]:
    """Return both decisions as text; ours is "" if they agree."""
    if ours is None or theirs.agrees(ours):
        return theirs.decision, ""
    return theirs.against(ours), ours.against(theirs)


@cache
def _source() -> str:
    """Return a number of the source of the rules, which are code."""
    digest = hashlib.sha256()
    for package in (providers, emu.isa):
        for place in package.__path__:
            for path in sorted(Path(place).rglob("*.py")):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _progress(found: dict[str, Any]) -> Progress:
    """Return the progress that a file has.  Raises TypeError and ValueError if it has none."""
    progress = Progress(**found)
    progress.groups = [Group(*one) for one in progress.groups]
    progress.failures = [(code, what, where) for code, what, where in progress.failures]
    return progress
