"""Every encoding of an ISA against the providers' tables and capstone.

A table is right if each of its rows is reached, and if of each encoding the row that takes it and
capstone say the same: how long it is, whether it uses an address relative to the pc, and whether
it transfers control.  Where they differ for a reason, `exemptions` has it.

    classify(chunk) for chunk in chunks("aarch64")  ->  ChunkResult, which adds up, is written down
    and read back judge("aarch64", "pid", results)                ->  Verdict
"""

from __future__ import annotations

from trapline.lab.check.encodings.classification import classify
from trapline.lab.check.encodings.results import ChunkResult
from trapline.lab.check.encodings.sampling import SWEPT, chunks
from trapline.lab.check.encodings.space import Chunk
from trapline.lab.check.encodings.verdict import Disagreement, Verdict, judge, unreached

__all__ = ["SWEPT", "Chunk", "ChunkResult", "Disagreement", "Verdict", "chunks", "classify", "judge", "unreached"]
