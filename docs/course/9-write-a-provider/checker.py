"""The checker: D programs use the student's provider, in the real framework."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from emu.assembly.assembler import machine_code
from emu.guest.function import CODE, FunctionFaultError, FunctionGuest
from emu.isa import ISAS
from emu.support.words import BadAddressError
from providers.fbt import PORTS
from providers.fbt.port import Function
from trapline import dof
from trapline.consumer.errors import ConsumerError
from trapline.consumer.tracer import Tracer
from trapline.d.errors import CompileError
from trapline.framework.device.dtrace import DTrace
from trapline.lab.course.work import Part, Work

# A function that returns its argument + 1.
_CODE = {
    "x86_64": "push rbp; mov rbp, rsp; lea rax, [rdi+1]; pop rbp; ret",
    "i386": "push ebp; mov ebp, esp; mov eax, dword ptr [ebp+8]; inc eax; pop ebp; ret",
    "aarch64": "stp x29, x30, [sp, #-16]!; mov x29, sp; add x0, x0, #1; ldp x29, x30, [sp], #16; ret",
    "riscv64": "c.addi sp, -16; c.sdsp ra, 8(sp); c.addi a0, 1; c.ldsp ra, 8(sp); c.addi sp, 16; c.jr ra",
}
_NAMES = ("alpha", "beta", "gamma")
_OTHER = "delta"
_APART = 64
_PROGRAM = "coverage:::first { @[probefunc, arg0] = count(); }"
_LIMIT = 2000


class Site(NamedTuple):
    """What the student's provider is given."""

    function: str
    address: int
    patch: bytes
    answer: int


def check(work: Work) -> Iterator[Part]:
    """Check the provider."""
    yield Part("its probes", 2, lambda: _why(work, _probes), "probe_create(self, module, function, name, aframes, arg)")
    yield Part(
        "it fires once", 3, lambda: _why(work, _once),
        "traps.add(handler); a handler fires with framework.probe(id, *frame.arguments()) and returns the answer",
    )  # fmt: skip
    yield Part(
        "no cost afterwards",
        2,
        lambda: _why(work, _gone),
        "the handler may remove the tracepoint that it is called for",
    )
    yield Part("disabled", 1, lambda: _why(work, _disabled), "what enable() has installed, disable() removes")
    yield Part(
        "breakpoints of others",
        1,
        lambda: _why(work, _others),
        "a handler answers 0 for an address that is not its own",
    )
    yield Part(
        "enabled again", 1, lambda: _why(work, _again), "patcher.create() once, patcher.install() at each enable"
    )


class _World:
    """Functions, the framework over them, and the student's provider."""

    def __init__(self, work: Work) -> None:
        isa = ISAS[work.isa]
        self.guest = FunctionGuest(isa, bytes(_APART * (len(_NAMES) + 1)))
        self.places = {name: CODE + _APART * number for number, name in enumerate((*_NAMES, _OTHER))}
        self.code = {name: machine_code(isa, _CODE[work.isa], place) for name, place in self.places.items()}
        for name, place in self.places.items():
            self.guest.engine.write_code(place, self.code[name])
        self.dtrace = DTrace(self.guest, self.guest.traps.core, dof)
        self.sites = {name: self._site(isa, name) for name in self.places}
        self.others: list[int] = []
        self.guest.traps.add(self._of_others)
        make = work.python("provider.py", "Coverage")
        self.provider = make(self.dtrace, self.guest.patcher, self.guest.traps, [self.sites[name] for name in _NAMES])

    def _site(self, isa: Any, name: str) -> Site:
        place, code = self.places[name], self.code[name]
        found = PORTS[isa.name].scan(Function(name, place, len(code), code + bytes(4))).sites[0]
        size = isa.instruction_length(code[found.address - place :])
        patch = next(one for one in isa.traps.breakpoints if len(one) <= size)
        return Site(name, found.address, patch, found.rval if isa.stub.by_code else found.saved)

    def _of_others(self, address: int, _frame: Any, _extra: int) -> int:
        if address != self.sites[_OTHER].address:
            return 0
        self.others.append(address)
        return self.sites[_OTHER].answer

    def call(self, name: str, number: int) -> str:
        """Call a function; return what is wrong with that."""
        try:
            found = self.guest.call(number, function=self.places[name], limit=_LIMIT)
        except (FunctionFaultError, BadAddressError) as error:
            return f"{name}({number}): {error}"
        return "" if found == number + 1 else f"{name}({number}) returns {found}, not {number + 1}"

    def is_patched(self, name: str) -> bool:
        """Return whether a function's code is not what it was."""
        return self.guest.engine.read(self.places[name], len(self.code[name])) != self.code[name]

    def traced(self, calls: list[tuple[str, int]], then: Callable[[], str] = lambda: "") -> tuple[dict[Any, int], str]:
        """Run the D program over some calls; return its aggregation, and what is wrong."""
        with Tracer(self.guest, self.dtrace, {"quiet": None}) as tracer:
            tracer.enable(_PROGRAM)
            tracer.session.go()
            why = next(filter(None, (self.call(*one) for one in calls)), "") or then()
            tracer.session.stop()
            tracer.session.work()
            return {one.keys: one.value for one in tracer.aggregations()}, why


_CALLS = [("alpha", 5), ("alpha", 5), ("beta", 6), ("alpha", 7)]
_FIRST = {("alpha", 5): 1, ("beta", 6): 1}


def _why(work: Work, test: Callable[[_World], str]) -> str:
    try:
        return test(_World(work))
    except (CompileError, ConsumerError) as error:
        return str(error)


def _probes(world: _World) -> str:
    with Tracer(world.guest, world.dtrace, {"quiet": None}) as tracer:
        for name in _NAMES:
            tracer.enable(f"coverage:kernel:{name}:first {{ trace(arg0); }}")
        found = tracer.enable("coverage::: { trace(arg0); }")
    return "" if found == len(_NAMES) else f"the provider has {found} probes for {len(_NAMES)} sites"


def _once(world: _World) -> str:
    found, why = world.traced(_CALLS)
    return why or _fired(found)


def _fired(found: dict[Any, int]) -> str:
    """Return what is wrong with the aggregation."""
    if found == _FIRST:
        return ""
    told = ", ".join(f"{keys[0]}({keys[1]}) {count} times" for keys, count in sorted(found.items()))
    return f"it fires for {told or 'nothing'}, and should for alpha(5) and beta(6) once each"


def _gone(world: _World) -> str:
    def then() -> str:
        if not world.is_patched("gamma"):
            return "gamma, which was not called yet, has no breakpoint"
        left = [name for name in ("alpha", "beta") if world.is_patched(name)]
        return f"{left[0]} still has its breakpoint after the first call" if left else ""

    return world.traced(_CALLS, then)[1]


def _disabled(world: _World) -> str:
    def then() -> str:
        return "" if world.is_patched("gamma") else "gamma, which was not called yet, has no breakpoint"

    why = world.traced(_CALLS, then)[1]
    left = [name for name in _NAMES if world.is_patched(name)]
    if not why and left:
        why = f"{left[0]} still has its breakpoint when no consumer is left"
    return why or world.call("gamma", 1)


def _others(world: _World) -> str:
    site, patcher = world.sites[_OTHER], world.guest.patcher
    patcher.install(patcher.create(site.address, site.patch, "other"))
    found, why = world.traced([(_OTHER, 3), *_CALLS, (_OTHER, 4)])
    if not why and len(world.others) != 2:
        why = f"another provider's breakpoint was hit twice, and its handler was asked {len(world.others)} times"
    return why or _fired(found)


def _again(world: _World) -> str:
    for time in ("first", "second"):
        found, why = world.traced(_CALLS)
        why = why or _fired(found)
        if why:
            return f"for the {time} consumer: {why}"
    return ""
