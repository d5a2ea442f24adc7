"""A decoder asked about each of the 2^32 instruction words, by a loop inside the emulator.

The loop (testbins/objects/sweep.c) is linked with the user's objects.  For each word it calls the
decoder, finds the package's rule in a table of masks and values, and counts the decisions for each
rule; the first word of each count is its example.  What has been counted is kept in a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from emu.displaced.decision import DisplacedRow, Otherwise
from emu.guest.function import FunctionFaultError
from emu.guest.kernel.boot import images
from emu.isa import Isa
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.kept import read, save
from trapline.lab.objects.request import Bar, RequestError
from trapline.lab.objects.user_code import UserCode
from trapline.lab.objects.verdict import DECISIONS

WORDS: Final = 1 << 32
# The encodings are visited in the order of the multiples of this odd number: 2^32 steps visit each of them once.
STRIDE: Final = 0x9E37_79B1
_LOOP: Final = "trapline_sweep"
# Words between two writings of the file, and words that fail one after the other until the sweep gives up.
_PART: Final = 1 << 20
_FAILURES: Final = 100
# The instructions in which a decoder decides about a word.
_PATIENCE: Final = 5_000_000


class Decoder(NamedTuple):
    """How the loop asks a decoder; all numbers are addresses, or words that are passed on."""

    function: str
    """The decoder's name: it returns 0, or an error number for an instruction that it refuses."""
    arguments: tuple[int, int, int]
    structure: int
    size: int
    """The structure with the decision: zeros before each call."""
    instruction: int
    """The four bytes of the instruction."""
    simulated: int
    """The byte that is not 0 if the instruction is simulated."""
    rows: Sequence[DisplacedRow]
    """The package's rules, by words of 32 bits; the last one matches everything."""


class Group(NamedTuple):
    """The words that match a rule and that the decoder has treated alike."""

    row: DisplacedRow
    decision: str
    words: int
    example: int


@dataclass
class Progress:
    """What has been decided."""

    digest: str
    """Of the objects, the loop and the rules."""
    done: int = 0
    """The words: those with the numbers below this one."""
    counts: list[list[int]] = field(default_factory=list)
    """For each rule, the number of words of each decision."""
    examples: list[list[int]] = field(default_factory=list)
    failures: list[tuple[int, str, str]] = field(default_factory=list)
    """(word, what happened, where)."""


def loop_object(isa: Isa) -> Path:
    """Return the object file with the loop."""
    return images.built(isa) / "objects" / "sweep.o"


class Sweep:
    """The sweep of one decoder; `code` is linked with `loop_object`.

    `kept`: the file that has the progress, and is made if it is not there; or the folder for a file
    of its own.  Raises `RequestError` if it is the file of other objects or rules.
    """

    def __init__(self, code: UserCode, decoder: Decoder, kept: Path) -> None:
        self._code, self._decoder, self._kept = code, decoder, kept
        rows = decoder.rows
        digest = hashlib.sha256(loop_object(code.isa).read_bytes())
        for one in code.objects:
            digest.update(one.path.read_bytes())
        digest.update(repr([(row.name, row.mask, row.value, _ours(row)) for row in rows]).encode())
        self.progress = Progress(digest.hexdigest()[:16])
        if kept.is_dir():
            self._kept = kept = kept / f"sweep-{self.progress.digest}.json"
        self.progress.counts = [[0] * len(DECISIONS) for _ in rows]
        self.progress.examples = [[0] * len(DECISIONS) for _ in rows]
        if kept.exists():
            self.progress = read(kept, self.progress.digest, _progress)
        table = b"".join((value & 0xFFFF_FFFF).to_bytes(4, "little") for row in rows for value in (row.mask, row.value))
        size = len(rows) * len(DECISIONS) * code.isa.word
        self._rows, self._counts, self._examples = code.allocate(table), code.allocate(size), code.allocate(size)
        self._block = code.allocate(14 * code.isa.word)

    def run(self, most: int, bar: Bar | None = None) -> None:
        """Decide about the next words, at most so many."""
        ends = min(WORDS, self.progress.done + most)
        if bar is not None:
            bar.begin(ends, self.progress.done)
        while self.progress.done < ends:
            before = self.progress.done
            self._part(min(_PART, ends - before))
            save(self._kept, asdict(self.progress))
            if bar is not None:
                bar.advance(self.progress.done - before)

    def groups(self) -> Iterator[Group]:
        """Yield the counts that are not 0."""
        for row, counts, examples in zip(self._decoder.rows, self.progress.counts, self.progress.examples, strict=True):
            for decision, count, example in zip(DECISIONS, counts, examples, strict=True):
                if count:
                    yield Group(row, decision, count, example)

    # -- one part

    def _part(self, words: int) -> None:
        """Decide about some words; one at which the decoder fails is a failure, and is skipped."""
        code, decoder, progress = self._code, self._decoder, self.progress
        left = words
        failed = 0
        self._clear()
        while left:
            first = (progress.done + words - left) * STRIDE % WORDS
            block = (
                code.address(decoder.function), *decoder.arguments, decoder.structure, decoder.size,
                decoder.instruction, decoder.simulated, self._rows, first, STRIDE, left, self._counts, self._examples,
            )  # fmt: skip
            word = code.isa.word
            code.store(self._block, b"".join(value.to_bytes(word, "little") for value in block))
            try:
                self._call()
            except (FunctionFaultError, GluePanicError) as error:
                pc = error.pc if isinstance(error, FunctionFaultError) else code.guest.engine.pc
                progress.failures.append((self._word(9), str(error), code.where(pc)))
                failed += 1
                if failed == _FAILURES:
                    raise RequestError(
                        f"{decoder.function} failed at {failed} of {words - left:,} words, at last at "
                        f"{self._word(9):08x}: {error}"
                    ) from None
                left = self._word(11) - 1
            else:
                left = 0
        progress.done += words
        self._add()

    def _call(self) -> None:
        """Run the loop.  Raises `FunctionFaultError`, also if the decoder does not return."""
        guest = self._code.guest
        guest.prepare(self._block, function=_LOOP)
        before = self._word(11)
        while not guest.advance(_PATIENCE):
            left = self._word(11)
            if left == before:
                raise FunctionFaultError(f"it had not returned after {_PATIENCE:,} instructions", guest.engine.pc)
            before = left

    def _word(self, index: int) -> int:
        """Return a member of the block."""
        word = self._code.isa.word
        return self._code.guest.engine.load(self._block + index * word, word)

    def _clear(self) -> None:
        size = len(self._decoder.rows) * len(DECISIONS) * self._code.isa.word
        self._code.store(self._counts, bytes(size))

    def _add(self) -> None:
        """Add the counts of a part; an example stays the first one."""
        rows = len(self._decoder.rows)
        found, examples = (self._table(place, rows) for place in (self._counts, self._examples))
        for row in range(rows):
            for decision in range(len(DECISIONS)):
                if found[row][decision] and not self.progress.counts[row][decision]:
                    self.progress.examples[row][decision] = examples[row][decision]
                self.progress.counts[row][decision] += found[row][decision]

    def _table(self, place: int, rows: int) -> list[list[int]]:
        word, columns = self._code.isa.word, len(DECISIONS)
        data = self._code.load(place, rows * columns * word)
        values = [int.from_bytes(data[at : at + word], "little") for at in range(0, len(data), word)]
        return [values[row * columns : (row + 1) * columns] for row in range(rows)]


def _progress(found: dict[str, Any]) -> Progress:
    """Return the progress that a file has.  Raises TypeError and ValueError if it has none."""
    progress = Progress(**found)
    progress.failures = [(word, what, where) for word, what, where in progress.failures]
    return progress


def _ours(row: DisplacedRow) -> str:
    """Return the decision of a rule."""
    if row.what is Otherwise.REFUSE:
        return DECISIONS[0]
    return DECISIONS[2] if isinstance(row.what, Otherwise) else DECISIONS[1]
