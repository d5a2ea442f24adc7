"""A decoder asked about many instructions of any size, by a loop inside the emulator.

The loop (`trapline_batch` in testbins/objects/sweep.c) is linked with the user's objects.  It gives
the decoder one instruction after the other, and writes down what each decision left in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from emu.guest.function import FunctionFaultError
from trapline.lab.objects.glue import GluePanicError
from trapline.lab.objects.request import RequestError
from trapline.lab.objects.user_code import UserCode

# Bytes that the loop gives to the decoder (sweep.c), and those of a result.
LONGEST: Final = 16
_RESULT: Final = 4
_LOOP: Final = "trapline_batch"
# The instructions in which a decoder decides about an encoding, and failures one after the other until asking ends.
_PATIENCE: Final = 5_000_000
_FAILURES: Final = 100
# The members of the loop's structure that change: encodings, answers, left.
_NEXT, _ANSWERS, _LEFT = 11, 12, 13
_MOST_ARGUMENTS: Final = 4


class Member(NamedTuple):
    """A part of a decision in memory."""

    address: int
    size: int


class Question(NamedTuple):
    """How the loop asks a decoder; all numbers are addresses, or words that are passed on."""

    function: str
    """The decoder's name: it returns 0, or an error number for an instruction that it refuses."""
    arguments: Sequence[int]
    """At most four."""
    structure: Member
    """The structure with the decision."""
    empty: bytes
    """What it has before each call."""
    instruction: int
    """The place of the instruction, for LONGEST bytes."""
    members: Sequence[Member]
    """What is read after a call that has not refused."""


class Answer(NamedTuple):
    """What the decoder has answered."""

    result: int
    """The int that it has returned; if it is not 0, the members are 0."""
    members: tuple[int, ...]


class Batches:
    """A decoder that is asked about encodings, many in one call."""

    def __init__(self, code: UserCode, question: Question, most: int) -> None:
        self._code, self._question, self.most = code, question, most
        self.failures: list[tuple[int, str, str]] = []
        """Those of the last batch: (the place of the encoding in it, what happened, where)."""
        self._size = _RESULT + sum(one.size for one in question.members)
        self._encodings = code.allocate(most * LONGEST)
        self._answers = code.allocate(most * self._size)
        members = b"".join(self._word(value) for one in question.members for value in one)
        arguments = (*question.arguments, *(0,) * (_MOST_ARGUMENTS - len(question.arguments)))
        fixed = (
            code.address(question.function), *arguments, question.structure.address, code.allocate(question.empty),
            question.structure.size, question.instruction, code.allocate(members), len(question.members),
        )  # fmt: skip
        assert len(fixed) == _NEXT
        self._fixed = b"".join(map(self._word, fixed))
        self._block = code.allocate(self._fixed + bytes((_LEFT + 1 - _NEXT) * code.isa.word))

    def ask(self, encodings: Sequence[bytes]) -> Iterator[bytes]:
        """Yield the raw answer about each encoding of LONGEST bytes, at most `most`.

        `failures` has those at which the decoder failed; their answers mean nothing.
        Raises `RequestError` if it fails too often.
        """
        code, count = self._code, len(encodings)
        self.failures.clear()
        code.store(self._encodings, b"".join(encodings))
        done = 0
        while done < count:
            changing = (self._encodings + done * LONGEST, self._answers + done * self._size, count - done)
            code.store(self._block, self._fixed + b"".join(map(self._word, changing)))
            try:
                self._call()
            except (FunctionFaultError, GluePanicError) as error:
                done = count - self._left()
                pc = error.pc if isinstance(error, FunctionFaultError) else code.guest.engine.pc
                self.failures.append((done, str(error), code.where(pc)))
                done += 1
                if len(self.failures) == _FAILURES:
                    raise RequestError(
                        f"{self._question.function} failed at {_FAILURES} of {done:,} encodings, at last at "
                        f"{encodings[done - 1].hex()}: {error}"
                    ) from None
            else:
                done = count
        data, size = code.load(self._answers, count * self._size), self._size
        return (data[at : at + size] for at in range(0, len(data), size))

    def answer(self, raw: bytes) -> Answer:
        """Return a raw answer as numbers."""
        values = []
        at = _RESULT
        for one in self._question.members:
            values.append(int.from_bytes(raw[at : at + one.size], "little"))
            at += one.size
        return Answer(int.from_bytes(raw[:_RESULT], "little", signed=True), tuple(values))

    def _call(self) -> None:
        """Run the loop.  Raises `FunctionFaultError`, also if the decoder does not return."""
        guest = self._code.guest
        guest.prepare(self._block, function=_LOOP)
        before = self._left()
        while not guest.advance(_PATIENCE):
            left = self._left()
            if left == before:
                raise FunctionFaultError(f"it had not returned after {_PATIENCE:,} instructions", guest.engine.pc)
            before = left

    def _left(self) -> int:
        word = self._code.isa.word
        return self._code.guest.engine.load(self._block + _LEFT * word, word)

    def _word(self, value: int) -> bytes:
        return value.to_bytes(self._code.isa.word, "little")
