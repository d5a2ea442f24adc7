"""The checker: instructions run plain and displaced by the rules, in many states of the CPU."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from emu.assembly.assembler import assemble
from emu.assembly.statements import AssemblyError
from emu.displaced.decision import Emulated
from emu.isa import ISAS
from providers.fasttrap import PORTS
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.prober.probers import PidProber
from trapline.lab.check.site.compare import Outcome, SiteChecker, SiteResult
from trapline.lab.course.work import Part, Work

_STARTER = Path(__file__).parent / "starter"
_ADDRESS = 0x40_0120
_NEAR = _ADDRESS + (32 << 20)
_STATES = 200
# The cases that the two functions have to do right.
_TRIED = {
    "x86_64": {
        "first": ("lea rax, [rip+8]", "lea rdi, [rip+0x1000]", "lea rsp, [rip-4]"),
        "second": ("pop rax", "pop rsp", "pop rbp", "pop rdi"),
    },
    "i386": {
        "first": ("jmp 0x400124", "jmp 0x4000f0", "jmp 0x400190"),
        "second": ("pop eax", "pop esp", "pop ebp", "pop edi"),
    },
    "aarch64": {
        "first": ("adrp x0, #0x400000", "adrp x7, #0x404000", "adrp x30, #0x3ff000"),
        "second": ("cbz x3, #0x400140", "cbz w3, #0x400140", "cbz w0, #0x400100"),
    },
    "riscv64": {
        "first": ("auipc a0, 1", "auipc sp, 0x80000", "auipc t6, 0xfffff"),
        "second": ("jalr ra, 0(a0)", "jalr ra, 8(ra)", "jalr a5, -3(a5)", "jalr t0, 0(zero)"),
    },
}


def check(work: Work) -> Iterator[Part]:
    """Check the two instructions that show the bugs, and the rules without them."""
    find = f"trapline check --asm '...' --isa {work.isa} --rules rules:RULES shows the state that makes the difference"
    yield Part("the first bug is found", 2, lambda: _found(work, "first"), find)
    yield Part("the second bug is found", 2, lambda: _found(work, "second"), find)
    mend = "the report names the register that is wrong; run the instruction by hand in that state"
    yield Part("first() is mended", 3, lambda: _mended(work, "first"), mend)
    yield Part("second() is mended", 3, lambda: _mended(work, "second"), mend)


def _rules(isa: str, function: Callable[[Any], Any]) -> Rules:
    """Return the package's rules with one function in front of them."""
    right = PORTS[isa]
    return Rules(pid=replace(right, treat=lambda code, fidelity: function(code) or right.treat(code, fidelity)))


def _result(isa: str, text: str, rules: Rules) -> SiteResult:
    """Try an instruction, displaced by rules, in many states.  Raises `AssemblyError`."""
    found = assemble(ISAS[isa], text, _ADDRESS)
    if len(found) != 1:
        raise AssemblyError(f"'{text}' is {len(found)} instructions")
    # The instruction stands somewhere in its page: some bugs need that.
    code = bytes(_ADDRESS & 0xFFF) + found[0].code
    stretch = Stretch(_ADDRESS & ~0xFFF, code)
    plain, patched = (TrialCpu(ISAS[isa], [stretch], stepping=stepping) for stepping in (True, False))
    checker = SiteChecker(plain, patched, PidProber(patched, _NEAR, rules), _STATES)
    return checker.check(CheckSite(_ADDRESS, found[0].code.ljust(16, b"\0"), "f", _ADDRESS))


def _found(work: Work, name: str) -> str:
    text = work.answer(name)
    if not isinstance(text, str):
        return f"'{name}' is not answered"
    given = replace(work, folder=_STARTER / work.isa)
    try:
        result = _result(work.isa, text, _rules(work.isa, given.python("rules.py", name)))
    except AssemblyError as error:
        return str(error)
    return "" if result.outcome is Outcome.DIVERGED else f"'{text}' does the same under {name}()"


def _mended(work: Work, name: str) -> str:
    function = work.python("rules.py", name)
    told = []

    def mine(code: Any) -> Any:
        told.append(function(code))
        return told[-1]

    for text in _TRIED[work.isa][name]:
        told.clear()
        result = _result(work.isa, text, _rules(work.isa, mine))
        if not any(isinstance(one, Emulated) and one.rule.name == "mine" for one in told):
            return f"{name}() does not emulate '{text}' any more"
        if result.outcome is not Outcome.AGREED:
            return f"one of the instructions that {name}() emulates does something else: it {result.outcome.value}"
    return ""
