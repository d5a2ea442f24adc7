"""One call for a test: a probed function behaves like the original.

Called with arguments, without probes and with all of FBT's probes, it must return the same result,
leave the same memory, and execute the same number of instructions; and each of its instructions is
checked, displaced as by a pid probe, in awkward states.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from emu.assembly import AssemblyError, machine_code
from emu.elf.image import Image
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.guest.function import CODE, FunctionFaultError, FunctionGuest, FunctionTraps
from emu.guest.modules import Module
from emu.isa import DEFAULT_ISA, Isa
from emu.support.did_you_mean import counted
from providers import fasttrap, fbt
from trapline.lab.check.cpu.cpu import Stretch, TrialCpu
from trapline.lab.check.cpu.listener import Listener
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import BY_PYTHON
from trapline.lab.check.prober.probers import PidProber
from trapline.lab.check.site.compare import Outcome, SiteChecker
from trapline.lab.check.site.subject import Subject

# The number of instructions after which a call is aborted.
_LIMIT: Final = 10_000_000
_NEAR: Final = 64 << 20
_LONGEST: Final = 16


@dataclass(frozen=True, slots=True)
class Called:
    """The result of a call."""

    result: str
    memory: bytes
    instructions: int


def assert_same_with_probe(
    function: str | bytes,
    *arguments: int,
    program: str | Path | None = None,
    isa: Isa = DEFAULT_ISA,
    rules: Rules | None = None,
    states: int = BY_PYTHON,
) -> None:
    """Assert that a function behaves the same with probes as without.

    `function` is a name in `program`, an ELF file, whose ISA is used then; or machine code of
    `isa`, as bytes or as assembly ("push rbp; mov rbp, rsp; pop rbp; ret").  Raises AssertionError,
    whose text says where they differ, `emu.elf.image.ElfError` for a file that cannot be used, and
    `emu.assembly.AssemblyError` for text that cannot be assembled.
    """
    rules = rules or Rules()
    image = None if program is None else Image(program)
    isa = isa if image is None else image.isa
    if image is None:
        function = _machine_code(isa, function)
    code: bytes | Image = image if image is not None else _bytes_of(function)
    name = function if isinstance(function, str) else None
    plain = _call(FunctionGuest(isa, code), name, arguments)
    guest = FunctionGuest(isa, code)
    listener = _probe(guest, _module(image, function), rules)
    probed = _call(guest, name, arguments)
    problems = [*_compare(plain, probed, listener.fired), *_sites(isa, image, function, rules, states)]
    assert not problems, "\n".join((f"{name or 'the code'} is not the same with a probe:", *problems))


def _machine_code(isa: Isa, function: str | bytes) -> bytes:
    """Return the machine code of a function without a program."""
    if isinstance(function, bytes):
        return function
    try:
        return machine_code(isa, function, CODE)
    except AssemblyError as error:
        if function.isidentifier():
            raise TypeError(f"'{function}' is the name of a function: give its program, too (program=...)") from None
        raise error from None


def _bytes_of(function: str | bytes) -> bytes:
    assert isinstance(function, bytes)
    return function


def _module(image: Image | None, function: str | bytes) -> Module:
    """Return the module for FBT, with only this function."""
    if image is not None:
        assert isinstance(function, str)
        return Module("program", (image.symbol(function),), image.read)
    code = _bytes_of(function)
    symbol = Symbol("code", CODE, len(code), SymbolType.FUNC, Binding.GLOBAL, 1)
    return Module("code", (symbol,), lambda address, size: code[address - CODE : address - CODE + size])


def _probe(guest: FunctionGuest, module: Module, rules: Rules) -> Listener:
    """Put all of FBT's probes for a function into a guest."""
    listener = Listener()
    framework = listener
    patcher = guest.patcher
    provider = fbt.FBT(framework, patcher, guest.traps, guest.isa, fidelity=rules.fidelity, port=rules.fbt)
    provider.provide_module(module)
    if rules.displaced is not None:
        FunctionTraps(guest.engine, guest.traps, patcher, table=rules.displaced).attach()
    for number, (_, record) in enumerate(listener.created, 1):
        provider.enable(number, record)
    return listener


def _call(guest: FunctionGuest, name: str | None, arguments: tuple[int, ...]) -> Called:
    before = guest.engine.instructions
    try:
        result = f"{guest.call(*arguments, function=name, limit=_LIMIT):#x}"
    except FunctionFaultError as error:
        result = str(error)
    guest.patcher.restore_all()
    return Called(result, bytes(guest.engine.memory.ram), guest.engine.instructions - before)


def _compare(plain: Called, probed: Called, fired: int) -> Iterator[str]:
    if plain.result != probed.result:
        yield f"  it returned {plain.result}, and {probed.result} with FBT's probes ({counted(fired, 'firing')})"
    elif plain.memory != probed.memory:
        pairs = enumerate(zip(plain.memory, probed.memory, strict=True))
        at = next(place for place, (one, other) in pairs if one != other)
        yield f"  memory differs with FBT's probes, from physical address {at:#x} on"
    elif plain.instructions != probed.instructions:
        yield f"  it executed {counted(plain.instructions, 'instruction')}, and {probed.instructions} with FBT's probes"


def _sites(isa: Isa, image: Image | None, function: str | bytes, rules: Rules, states: int) -> Iterator[str]:
    """Check each instruction in awkward states, and report those that diverge."""
    for result in _results(isa, image, function, rules, states):
        if result.outcome is Outcome.DIVERGED:
            divergence = result.divergences[0]
            values = " ".join(f"{name}={value:#x}" for name, value in divergence.state.registers.items() if value)
            found = "; ".join(map(str, divergence.differences))
            yield f"  {result.site.name} ({result.why}), {divergence.way}, with {values or 'zeros'}: {found}"


def _results(isa: Isa, image: Image | None, function: str | bytes, rules: Rules, states: int) -> Iterator[Any]:
    bias = 0
    if image is not None:
        assert isinstance(function, str)
        subject = Subject(image.path, None, "pid", function, every_instruction=True)
        bias = subject.bias
        code, sites = subject.code(bias), [site.moved(bias) for site in subject.sites(rules)]
    else:
        data = _bytes_of(function)
        code, sites = [Stretch(CODE, data)], list(_sites_of(isa, data))
    plain, patched = (TrialCpu(isa, code, stepping=stepping) for stepping in (True, False))
    checker = SiteChecker(plain, patched, PidProber(patched, bias + _NEAR, rules), states)
    return (checker.check(site) for site in sites)


def _sites_of(isa: Isa, code: bytes) -> Iterator[CheckSite]:
    for offset in fasttrap.PORTS[isa.name].boundaries(code):
        yield CheckSite(CODE + offset, code[offset : offset + _LONGEST], "code", CODE)
