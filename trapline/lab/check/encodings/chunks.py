"""An ISA's encodings, cut into chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from trapline.lab.check.encodings import x86
from trapline.lab.check.encodings.space import ASKED, CHUNK, FORMS, WITNESSES, Chunk, Form

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
