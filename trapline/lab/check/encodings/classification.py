"""Classifying: a chunk of encodings goes in, and what our tables and capstone say of them comes out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cache

from emu.displaced import Treatment
from trapline.lab.check.encodings import cells, native, x86_64
from trapline.lab.check.encodings.decoder import decoder
from trapline.lab.check.encodings.exemptions import EXEMPTIONS
from trapline.lab.check.encodings.results import Cell, ChunkResult, Doing, Ours, merge
from trapline.lab.check.encodings.space import FORMS, WITNESSES, Chunk
from trapline.lab.check.encodings.tables import facts, tables, witnesses


def classify(chunk: Chunk) -> ChunkResult:
    """Classify a chunk.  It depends on nothing but the chunk, and runs in any process."""
    if chunk.isa not in FORMS:
        return ChunkResult(chunk, merge(x86_64.classify(chunk)))
    if chunk.form == WITNESSES:
        counted = _count_witnesses(chunk.isa)
    else:
        counted = _told(chunk, (native if native.available() else cells).count(chunk))
    return ChunkResult(chunk, merge(counted))


def _told(chunk: Chunk, counted: Iterable[cells.Cell]) -> Iterator[Cell]:
    """Say in words what the keys of cells say in numbers."""
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
    doing = {Treatment.OUT_OF_LINE: Doing.OUT_OF_LINE, Treatment.REFUSE: Doing.REFUSED}
    exemption = -1
    if choice.exemption:
        exemption = EXEMPTIONS[isa].index(cells.exemptions(isa, provider)[choice.exemption - 1])
    return Ours(
        provider,
        row.name,
        doing[row.what] if isinstance(row.what, Treatment) else Doing.EMULATED,
        row.length,
        facts(isa, provider, choice.row),
        exemption,
    )


def _count_witnesses(isa: str) -> Iterator[Cell]:
    """Classify encodings made for each row and each exemption."""
    rules = [(row.mask, row.value, row.length) for rows in tables(isa).values() for row in rows]
    rules += [(one.mask, one.value, 0) for one in EXEMPTIONS[isa]]
    for name, form in FORMS[isa].items():
        wanted = [(mask, value) for mask, value, length in rules if length in (0, form.size)]
        words = sorted({word for mask, value in wanted if value < 1 << 8 * form.size
                        for word in witnesses(mask, value, form.size) if form.holds(word)})  # fmt: skip
        yield from _told(Chunk(isa, name, 0, 0), cells.count_words(isa, words, form.size))
