"""Every encoding of an ISA against the providers' tables and capstone.

A table is correct if each of its rows is reached, and if for each encoding the row that matches and
capstone agree on three facts: the length, whether the instruction uses an address relative to the
pc, and whether it transfers control.  `exemptions` lists the differences that have a reason.

    classify(chunk) for chunk in chunks("aarch64")  ->  ChunkResults, which can be added up, written
                                                        to a file and read back
    judge("aarch64", "pid", results)                ->  Verdict
"""

from __future__ import annotations

from trapline.lab.check.encodings.classification import SWEPT, chunks, classify
from trapline.lab.check.encodings.results import ChunkResult
from trapline.lab.check.encodings.space import Chunk
from trapline.lab.check.encodings.verdict import Disagreement, Verdict, judge, unreached

__all__ = ["SWEPT", "Chunk", "ChunkResult", "Disagreement", "Verdict", "chunks", "classify", "judge", "unreached"]
