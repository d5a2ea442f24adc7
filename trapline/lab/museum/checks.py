"""The checks of the museum, which show a difference.

One instruction is tried in many states; or a function is run with a probe in it; or with all of
FBT's probes for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

from emu.displaced.frame import Frame
from emu.elf.symbols import Binding, Symbol, SymbolType
from emu.engine.engine import Engine
from emu.engine.state import HANDLED
from emu.guest.function import CODE, FunctionFaultError, FunctionGuest, FunctionTraps
from emu.guest.modules import Module
from emu.probe.trap import TrapHandler
from emu.support.did_you_mean import counted
from emu.support.words import BadAddressError
from providers import fbt
from trapline.lab.check.cpu.cpu import Ending, Stretch, TrialCpu
from trapline.lab.check.cpu.listener import Listener
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.cpu.states import State
from trapline.lab.check.prober.probers import FbtProber, NoProbe, PidProber, Prober, UprobeProber
from trapline.lab.check.site.compare import Outcome, SiteChecker
from trapline.lab.museum.exhibit import Exhibit, Showing

# The address of an exhibit's code; the first of eight pages (`trapline.lab.check.cpu.aliased.RIGHTS`).
ADDRESS: Final = 0x40_0000
_NEAR: Final = ADDRESS + (32 << 20)
_LONGEST: Final = 16
# The return address of functions: it has no code.
_RETURN: Final = 0x0000_2A00_0000_7000
_STACK: Final = 0x0000_2A00_0000_2800
_NAME: Final = "exhibit"
# Instructions after which a single displaced instruction is not followed any more.
_PLAYED: Final = 12


def _module(code: bytes, address: int) -> Module:
    symbol = Symbol(_NAME, address, len(code), SymbolType.FUNC, Binding.GLOBAL, 1)
    return Module("kernel", (symbol,), lambda at, size: code[at - address :][:size])


def _prober(exhibit: Exhibit, cpu: TrialCpu, rules: Rules) -> Prober:
    if exhibit.provider == "fbt":
        return FbtProber(cpu, _module(exhibit.code, ADDRESS), rules)
    return (PidProber if exhibit.provider == "pid" else UprobeProber)(cpu, _NEAR, rules)


# Called with the engine and the handlers of a run that is about to begin.
Watch = Callable[[Engine, TrapHandler], object]


def _site(exhibit: Exhibit, offset: int) -> CheckSite:
    return CheckSite(ADDRESS + offset, exhibit.code[offset : offset + _LONGEST], _NAME, ADDRESS)


@dataclass(frozen=True, slots=True)
class InStates:
    """The instruction at `offset`, itself and displaced, in many states (`SiteChecker`)."""

    offset: int = 0
    states: int = 64

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Showing:
        """Compare."""
        code = Stretch(ADDRESS, exhibit.code)
        plain, patched = (TrialCpu(exhibit.isa, [code], stepping=stepping) for stepping in (True, False))
        checker = SiteChecker(plain, patched, _prober(exhibit, patched, rules), self.states)
        result = checker.check(_site(exhibit, self.offset))
        if result.outcome is Outcome.REFUSED:
            return Showing(agrees=True, lines=(f"no probe goes there: {result.why}",))
        if not result.divergences:
            agrees = result.outcome is Outcome.AGREED
            return Showing(agrees, (f"{result.why}: {result.outcome.value} in {counted(result.states, 'state')}",))
        first = result.divergences[0]
        state = ", ".join(f"{name} = {value:#x}" for name, value in first.state.registers.items() if value)
        return Showing(agrees=False, lines=(
            f"{result.why} ({first.way})",
            f"state: {state or 'zero in every register'}; flags {first.state.flags:#x}",
            *map(str, first.differences),
        ))  # fmt: skip

    def play(self, exhibit: Exhibit, rules: Rules, watch: Watch) -> str:
        """Run the instruction displaced, in the state that shows the difference; return the end."""
        code = Stretch(ADDRESS, exhibit.code)
        plain, patched = (TrialCpu(exhibit.isa, [code], stepping=stepping) for stepping in (True, False))
        old = SiteChecker(plain, patched, _prober(exhibit, patched, exhibit.old), self.states)
        shown = old.check(_site(exhibit, self.offset)).divergences
        cpu = TrialCpu(exhibit.isa, [code], stepping=False)
        treated = _prober(exhibit, cpu, rules).look(_site(exhibit, self.offset))
        state = shown[0].state if shown else State("zeros", {})

        def run() -> str:
            cpu.clean()
            cpu.load(state)
            cpu.engine.pc = ADDRESS + self.offset
            watch(cpu.engine, cpu.kernel.traps)
            fault = cpu.kernel.trapping.advance(
                cpu.thread, lambda: cpu.engine.run(hard=cpu.engine.instructions + _PLAYED)
            )
            if fault is not None:
                return f"the CPU comes to {cpu.engine.pc:#x}, where it gets signal {fault.number}"
            return f"the CPU comes to {cpu.engine.pc:#x}"

        if isinstance(treated, NoProbe):
            return f"no probe goes there: {treated.rule}; {run()}"
        with treated.ways[0].in_place():
            return run()


class FunctionRun(NamedTuple):
    """A run of a function, and its results."""

    end: str
    registers: bytes
    memory: dict[str, bytes]


@dataclass(frozen=True, slots=True)
class InRun:
    """The function called without a probe, with one at `offset`, and after it is removed."""

    arguments: tuple[int, ...] = ()
    offset: int = 0
    limit: int = 10_000
    """The number of instructions after which it is aborted, because it would not end."""

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Showing:
        """Compare."""
        code = [Stretch(ADDRESS, exhibit.code)]
        plain = self._run(TrialCpu(exhibit.isa, code, stepping=False))
        cpu = TrialCpu(exhibit.isa, code, stepping=False)
        treated = _prober(exhibit, cpu, rules).look(_site(exhibit, self.offset))
        if isinstance(treated, NoProbe):
            return Showing(agrees=True, lines=(f"no probe goes there: {treated.rule}",))
        hits = 0

        def hit(_address: int, _frame: Frame, _extra: int) -> int:
            """Clear the reservation, as exceptions do; leave the breakpoint to its owner."""
            nonlocal hits
            hits += 1
            cpu.engine.cpu.lose_reservation()
            return 0

        cpu.kernel.traps.add(hit)
        for way in treated.ways:
            hits = 0
            with way.in_place():
                probed = self._run(cpu)
            runs = {"without the probe": plain, "with the probe": probed, "once it is out": self._run(cpu)}
            if hits and all(run == plain for run in runs.values()):
                continue
            lines = [f"{name + ':':19}{run.end}" for name, run in runs.items()]
            if len({run.end for run in runs.values()}) == 1:
                lines.append("registers or memory differ" if hits else "the probe is never hit")
            return Showing(agrees=False, lines=(f"{treated.how} ({way.name})", *lines))
        return Showing(agrees=True, lines=(f"{treated.how}: {plain.end}, as without the probe, and once it is out",))

    def play(self, exhibit: Exhibit, rules: Rules, watch: Watch) -> str:
        """Call the function with the probe in it, and return how that ended."""
        cpu = TrialCpu(exhibit.isa, [Stretch(ADDRESS, exhibit.code)], stepping=False)
        treated = _prober(exhibit, cpu, rules).look(_site(exhibit, self.offset))
        if isinstance(treated, NoProbe):
            watch(cpu.engine, cpu.kernel.traps)
            return f"no probe goes there: {treated.rule}; {self._run(cpu).end}"

        def lose(_address: int, _frame: Frame, _extra: int) -> int:
            """Clear the reservation, as exceptions do."""
            cpu.engine.cpu.lose_reservation()
            return 0

        cpu.kernel.traps.add(lose)
        with treated.ways[0].in_place():
            watch(cpu.engine, cpu.kernel.traps)
            return self._run(cpu).end

    def _run(self, cpu: TrialCpu) -> FunctionRun:
        engine, isa = cpu.engine, cpu.isa
        cpu.clean()
        registers = dict(zip(isa.calling.arguments, self.arguments, strict=False)) | {isa.registers.sp: _STACK}
        if isa.registers.link is not None:
            registers[isa.registers.link] = _RETURN
        cpu.load(State("a call", registers))
        if isa.registers.link is None:
            engine.store(_STACK, 8, _RETURN)
        engine.pc = ADDRESS
        fault = cpu.kernel.trapping.advance(cpu.thread, lambda: engine.run(hard=engine.instructions + self.limit))
        if fault is None:
            end = f"has not ended after {self.limit:,} instructions, at {_place(engine.pc)}"
        elif engine.pc == fault.address == _RETURN:
            end = f"returns {engine.read_register(isa.calling.results[0]):#x}"
        else:
            end = str(Ending(engine.pc, (fault.number, fault.code, fault.address or 0)))
        return FunctionRun(end, cpu.general(), cpu.written())


def _place(pc: int) -> str:
    return f"{_NAME}+{pc - ADDRESS:#x}" if 0 <= pc - ADDRESS < 1 << 12 else f"{pc:#x}"


@dataclass(frozen=True, slots=True)
class InFbt:
    """A function called without probes, and with all of FBT's; `fires` says how they must fire."""

    arguments: tuple[int, ...] = ()
    fires: tuple[tuple[str, int], ...] = (("entry", 1), ("return", 1))
    limit: int = 10_000
    """The number of instructions after which it is aborted, because it would not end."""

    def verdict(self, exhibit: Exhibit, rules: Rules) -> Showing:
        """Compare."""
        plain = self._call(FunctionGuest(exhibit.isa, exhibit.code))
        guest = FunctionGuest(exhibit.isa, exhibit.code)
        listener = self._probed(guest, exhibit, rules)
        probed = self._call(guest)
        hits = listener.by_name()
        fired = [
            f"{name} fires {counted(hits[name], 'time')}, not {count}"
            for name, count in self.fires
            if hits[name] != count
        ]
        if plain == probed and not fired:
            each = ", ".join(f"{name} fires {counted(count, 'time')}" for name, count in self.fires)
            return Showing(agrees=True, lines=(f"{plain}, with and without probes; {each}",))
        return Showing(agrees=False, lines=(f"without probes: {plain}", f"with probes:    {probed}", *fired))

    def play(self, exhibit: Exhibit, rules: Rules, watch: Watch) -> str:
        """Call the function with all of FBT's probes in it, and return how that ended."""
        guest = FunctionGuest(exhibit.isa, exhibit.code)
        self._probed(guest, exhibit, rules)
        watch(guest.engine, guest.traps)
        return self._call(guest)

    def _call(self, guest: FunctionGuest) -> str:
        try:
            return f"returns {guest.call(*self.arguments, limit=self.limit):#x}"
        except FunctionFaultError as error:
            return f"{error} (at {_NAME}+{error.pc - CODE:#x})"

    @staticmethod
    def _probed(guest: FunctionGuest, exhibit: Exhibit, rules: Rules) -> Listener:
        listener = Listener()
        framework = listener
        patcher = rules.patcher(guest.engine)
        provider = fbt.FBT(framework, patcher, guest.traps, exhibit.isa, fidelity=rules.fidelity, port=rules.fbt)
        provider.provide_module(_module(exhibit.code, CODE))

        _ExhibitTraps(guest.engine, guest.traps, patcher, table=rules.displaced).attach()
        for number, (_, record) in enumerate(listener.created, 1):
            provider.enable(number, record)
        return listener


class _ExhibitTraps(FunctionTraps):
    """The traps of an exhibit."""

    def unclaimed(self, address: int) -> int:
        """Take a breakpoint that the stub does not emulate.

        AArch64's kernel ignores the stub's answer (FreeBSD sys/arm64/arm64/trap.c): the breakpoint
        is hit again.
        """
        if not self._engine.isa.traps.repeats_unclaimed:
            raise FunctionFaultError("a breakpoint that no probe claims", address)
        self._engine.pc = address
        return HANDLED

    def faulted(self, address: int, error: BadAddressError) -> int:
        """Report the fault of a displaced instruction.  Raises `FunctionFaultError`."""
        raise FunctionFaultError(str(error), address) from error
