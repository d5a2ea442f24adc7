"""A program's machine code as text, for readers: `dtrace -S -x machinecode`.

For each clause there is LLVM's optimized assembly language, and then the machine code that LLVM
makes from it.  The functions that all clauses share are omitted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from emu.native.compile import assembly
from trapline.framework.buffers.layout import lay_out
from trapline.framework.native.dif.translation import Surroundings
from trapline.framework.native.ecb import ClauseCode
from trapline.framework.native.subroutines.subroutines import SUBROUTINES, subroutine_name
from trapline.framework.native.support import SCALARS

if TYPE_CHECKING:
    from trapline.framework.base.program import DifVariable, EcbDescription, Program, Scope

_RULE: Final = 78


def listing(program: Program, options: Mapping[str, int]) -> Iterator[str]:
    """Yield the lines for every clause, once for those that do the same.

    `options` are those that records depend on (`trapline.framework.buffers.layout.lay_out`).
    """
    declared: dict[tuple[Scope, int], DifVariable] = {}
    # As in the kernel guest, which has all of them.
    support = {*SCALARS.values(), "now", "name", *map(subroutine_name, SUBROUTINES)}
    seen: set[object] = set()
    for number, ecb in enumerate(program.ecbs, 1):
        objects = [difo for difo in (ecb.predicate, *(action.difo for action in ecb.actions)) if difo is not None]
        for difo in objects:
            for variable in difo.variables:
                declared.setdefault((variable.scope, variable.id), variable)
        doing = ecb.predicate, tuple(replace(action, statement=0) for action in ecb.actions)
        if doing in seen:
            continue
        seen.add(doing)
        yield ""
        yield f" CLAUSE {number}: {ecb.probe} ".center(_RULE, "-")
        yield from _clause(ecb, options, Surroundings(support, declared))


def _clause(ecb: EcbDescription, options: Mapping[str, int], surroundings: Surroundings) -> Iterator[str]:
    module = ClauseCode(ecb.predicate, lay_out(ecb, options), surroundings, staged=False).module
    optimized, code = assembly(module.source)
    yield from _functions(optimized)
    yield " machine code ".center(_RULE, "-")
    yield from _instructions(code)


def _functions(source: str) -> Iterator[str]:
    """Remove the text before the functions and after them."""
    lines = iter(source.splitlines())
    for line in lines:
        if line.startswith("define"):
            yield line
            for inside in lines:
                yield inside
                if inside == "}":
                    break


def _instructions(code: str) -> Iterator[str]:
    """Remove the lines that only an assembler needs."""
    for line in code.expandtabs(8).splitlines():
        text = line.strip()
        if (text and not text.startswith(("#", "."))) or text.startswith(".L"):
            yield line
