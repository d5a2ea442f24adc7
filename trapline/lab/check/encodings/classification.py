"""An ISA's encodings, cut into chunks, and the classification of a chunk.

A chunk is classified by the results of the tables and of capstone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Final

from emu.displaced.decision import DisplacedRow, Otherwise
from trapline.lab.check.cpu.rules_under_test import load_rules
from trapline.lab.check.encodings import cells, native, ports, x86
from trapline.lab.check.encodings.decoder import decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS
from trapline.lab.check.encodings.results import Cell, ChunkResult, Doing, Ours, merge
from trapline.lab.check.encodings.space import ASKED, CHUNK, FORMS, WITNESSES, Chunk, Form
from trapline.lab.check.encodings.tables import facts, tables, witnesses

_FORMS: Final[Mapping[str, Mapping[str, Form | x86.Form]]] = {**FORMS, **x86.FORMS}
# The ISAs whose encodings can be checked.
SWEPT: Final = tuple(_FORMS)


def forms(isa: str) -> Mapping[str, int]:
    """Return the number of encodings of each form of an ISA."""
    return {name: form.encodings for name, form in _FORMS[isa].items()}


def chunks(isa: str, sample: int | None = None, rules: str = "") -> Iterator[Chunk]:
    """Cut an ISA's encodings into chunks: all of them, or about `sample` that are spread evenly.

    A sample begins with the witnesses of the rows.  Its stride is odd, so that it meets all values
    of the low bits too.
    """
    if sample is not None:
        yield Chunk(isa, WITNESSES, 0, 1, rules=rules)
    sizes = forms(isa)
    total = sum(sizes.values())
    most = ASKED if rules else CHUNK[isa]
    for form, size in sizes.items():
        stride = 1 if sample is None else max(1, total // sample) | 1
        numbers = range(0, size, stride)
        for start in range(0, len(numbers), most):
            part = numbers[start : start + most]
            yield Chunk(isa, form, part.start, len(part), stride, rules)


def classify(chunk: Chunk) -> ChunkResult:
    """Classify a chunk.  The result depends only on the chunk; it can run in any process.

    Raises `trapline.lab.check.cpu.rules_under_test.RulesError` if the user's rules cannot be
    loaded.
    """
    counted: Iterable[Cell]
    if chunk.rules:
        counted = ports.count(chunk.isa, ports.of_rules(chunk.isa, load_rules(chunk.rules)), _codes(chunk))
    elif chunk.isa not in FORMS:
        counted = ports.count(chunk.isa, ports.own(chunk.isa), _codes(chunk))
    elif chunk.form == WITNESSES:
        counted = _count_witnesses(chunk.isa)
    else:
        counted = _told(chunk, (native if native.available() else cells).count(chunk))
    return ChunkResult(chunk, merge(counted))


def _codes(chunk: Chunk) -> Iterator[bytes]:
    """Yield the encodings of a chunk."""
    if chunk.isa not in FORMS:
        if chunk.form == WITNESSES:
            return x86.witnesses(chunk.isa)
        return map(x86.FORMS[chunk.isa][chunk.form].code, chunk.numbers)
    if chunk.form == WITNESSES:
        displaced = load_rules(chunk.rules).displaced
        more = displaced.rows if displaced else ()
        return (word.to_bytes(form.size, "little") for form, words in _witnesses(chunk.isa, more) for word in words)
    form = FORMS[chunk.isa][chunk.form]
    return (form.word(number).to_bytes(form.size, "little") for number in chunk.numbers)


def _told(chunk: Chunk, counted: Iterable[cells.Cell]) -> Iterator[Cell]:
    """Decode the numbers in the keys of cells."""
    size = FORMS[chunk.isa][chunk.form].size
    for cell in counted:
        key = cells.unpack(chunk.isa, cell.key)
        ours = tuple(
            _ours(chunk.isa, provider, choice) for provider, choice in zip(tables(chunk.isa), key.choices, strict=True)
        )
        theirs = decoder(chunk.isa).facts(key.number, key.bits)
        yield Cell(ours, theirs, cell.encodings, cell.example.to_bytes(size, "little"))


@cache
def _ours(isa: str, provider: str, choice: cells.Choice) -> Ours:
    row = tables(isa)[provider][choice.row]
    doing = {
        Otherwise.OUT_OF_LINE: Doing.OUT_OF_LINE,
        Otherwise.STEP: Doing.OUT_OF_LINE,
        Otherwise.REFUSE: Doing.REFUSED,
    }
    exemption = -1
    if choice.exemption:
        exemption = EXEMPTIONS[isa].index(cells.exemptions(isa, provider)[choice.exemption - 1])
    return Ours(
        provider,
        row.name,
        doing[row.what] if isinstance(row.what, Otherwise) else Doing.EMULATED,
        row.length,
        facts(isa, provider, choice.row),
        exemption,
    )


def _count_witnesses(isa: str) -> Iterator[Cell]:
    """Classify encodings made for each row and each exemption."""
    for form, words in _witnesses(isa):
        name = next(name for name, one in FORMS[isa].items() if one == form)
        yield from _told(Chunk(isa, name, 0, 0), cells.count_words(isa, words, form.size))


def _witnesses(isa: str, more: Iterable[DisplacedRow] = ()) -> Iterator[tuple[Form, list[int]]]:
    """Yield for each form the words made for an ISA's rows, `more`, and each exemption."""
    rows = (*more, *(row for table in tables(isa).values() for row in table))
    rules = [(row.mask, row.value, row.length) for row in rows]
    rules += [(one.mask, one.value, 0) for one in EXEMPTIONS[isa]]
    for form in FORMS[isa].values():
        wanted = [(mask, value) for mask, value, length in rules if length in (0, form.size)]
        words = {word for mask, value in wanted if value < 1 << 8 * form.size
                 for word in witnesses(mask, value, form.size) if form.holds(word)}  # fmt: skip
        yield form, sorted(words)
