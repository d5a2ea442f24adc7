"""The checker: the answers are what FBT's scanner finds."""

from __future__ import annotations

from collections.abc import Iterator

import trapline
from trapline.lab.course.work import Part, Work


def check(work: Work) -> Iterator[Part]:
    """Compare each answer with the site that FBT has."""
    (function,) = trapline.sites("testbins:kernel", function="sys_kldfind", isa=work.isa)
    entry, *returns = function.sites
    facts = {
        "entry_offset": (2, str(entry.instruction.offset), "the column with a plus sign counts in hexadecimal"),
        "entry_bytes": (2, entry.instruction.code.hex(), "the bytes after the offset"),
        "entry_patch": (2, entry.patch.hex(), "the red column: a breakpoint is as long as the ISA's port says"),
        "returns": (2, str(len(returns)), "count the lines that begin with return"),
        "displaced": (2, str(entry.decision.plan), "the last column: what is loaded, stored and set"),
    }
    for name, (points, right, hint) in facts.items():
        yield Part(name, points, lambda name=name, right=right: _wrong(work.answer(name), right), hint)


def _wrong(answer: object, right: str) -> str:
    if answer is None:
        return "there is no answer"
    given = str(answer).lower().replace(" ", "").removeprefix("0x")
    return "" if given == right.lower().replace(" ", "") else f"'{answer}' is not right"
