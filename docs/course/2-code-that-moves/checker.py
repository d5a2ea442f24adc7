"""The checker: the instructions run at two addresses, and the pid provider is asked about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import trapline
from trapline.lab.course.work import Part, Work
from trapline.lab.displace.bench import DisplacedInstruction

_PLACES = (0x2_0000, 0x2_1000)


def check(work: Work) -> Iterator[Part]:
    """Check the three files."""
    yield Part(
        "relative.s", 4, lambda: _one(work, "relative.s", _relative),
        "a branch to a number, or an address that is made from the pc; its condition must hold for registers of 0",
    )  # fmt: skip
    yield Part("same.s", 3, lambda: _one(work, "same.s", _same), "an addition, say")
    yield Part(
        "refused.s", 3, lambda: _one(work, "refused.s", _refused),
        "breakpoints are refused everywhere; the rule's name is in the dim line",
    )  # fmt: skip


def _one(work: Work, file: str, test: Callable[[Work, DisplacedInstruction], str]) -> str:
    """Return what is wrong with a file that must have one instruction."""
    lines = [line for line in work.text(file).splitlines() if line.strip() and not line.startswith("//")]
    if not lines:
        return "there is no instruction"
    try:
        found = trapline.displace(work.isa, "\n".join(lines), address=_PLACES[0])
    except trapline.TraplineError as error:
        return str(error)
    return test(work, found[0]) if len(found) == 1 else f"there are {len(found)} instructions"


def _moved(work: Work, one: DisplacedInstruction) -> bool:
    """Return whether the same bytes do something else at another address."""
    ends = []
    for place in _PLACES:
        (step, *_) = trapline.execute(work.isa, bytes.fromhex(one.code), address=place, count=1).executed
        ends.append(sorted((change.what, change.after) for change in step.changes))
    return ends[0] != ends[1]


def _relative(work: Work, one: DisplacedInstruction) -> str:
    decision = one.decision("pid")
    rewritten = decision.copy is not None and "rewritten" in decision.copy.relocation
    return "" if rewritten or _moved(work, one) else f"'{one.text}' does the same at any address"


def _same(work: Work, one: DisplacedInstruction) -> str:
    decision = one.decision("pid")
    if decision.what != "out of line":
        return f"the pid provider has '{one.text}' {decision.what}, not out of line"
    if _moved(work, one) or (decision.copy is not None and "rewritten" in decision.copy.relocation):
        return f"'{one.text}' does something else at another address"
    (step, *_) = trapline.execute(
        work.isa, bytes.fromhex(one.code), _different(work), address=_PLACES[0], count=1
    ).executed
    return "" if step.changes else f"'{one.text}' changes no register"


def _different(work: Work) -> dict[str, int]:
    """Return registers of which no two are the same."""
    names = {"x86_64": "rax rbx rcx rdx rsi rdi", "i386": "eax ebx ecx edx esi edi"}.get(work.isa)
    names = names or {"aarch64": "x0 x1 x2 x3", "riscv64": "a0 a1 a2 a3"}[work.isa]
    return {name: 0x101 * (number + 3) for number, name in enumerate(names.split())}


def _refused(work: Work, one: DisplacedInstruction) -> str:
    decision = one.decision("pid")
    if decision.what != "refused":
        return f"a probe on '{one.text}' is allowed: it is {decision.what}"
    answer = work.answer("why")
    if str(answer).strip() == decision.rule:
        return ""
    return f"the rule is not '{answer}'" if answer else "'why' is not answered"
