"""Probers: they probe a site during a check with the provider's own code.

For each site a prober returns the rule that refuses it, or the ways in which its displaced
instruction can be executed.  Each way is installed, tried in a number of states, and removed again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Refused, Stepped
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.mm.user_code import ProcessCode, SlotPages
from emu.guest.modules import Module
from emu.guest.processes import Slots
from emu.probe.host_trap import HostTrap
from emu.probe.trap import TrapHandler
from providers import fasttrap, fbt, uprobes
from providers.fasttrap.out_of_line import CHUNK
from providers.fasttrap.records import Probe, ProbeType
from providers.fbt.records import Record
from providers.sequences import REACH
from trapline.lab.check.cpu.cpu import TrialCpu
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.check.cpu.site import CheckSite
from trapline.lab.check.native.native_listener import CountingListener
from trapline.lab.check.prober.alike import Accepted
from trapline.lab.check.prober.trial_traps import TrialTraps

Apply = Callable[[], None]


class Way(NamedTuple):
    """One way in which a displaced instruction is executed."""

    name: str
    enter: Apply
    """Puts the probe in place."""
    leave: Apply
    """Removes the probe."""

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Keep the probe in place inside a `with` statement."""
        self.enter()
        try:
            yield
        finally:
            self.leave()


class NoProbe(NamedTuple):
    """No probe is allowed there."""

    rule: str


class Treated(NamedTuple):
    """One way to execute a displaced instruction."""

    how: str
    """The plan, or the copy."""
    ways: tuple[Way, ...]


class Prober(ABC):
    """One provider on a CPU that runs patched code."""

    def __init__(self, traps: TrapHandler) -> None:
        self.traps = traps
        """The handlers that are asked about its breakpoints."""

    @abstractmethod
    def look(self, site: CheckSite) -> Treated | NoProbe:
        """Decide about a site."""

    def decide(self, site: CheckSite) -> Accepted | None:
        """Return how the instruction is displaced.

        None: each site is tried where it is, and while it has the only probe.
        """
        del site
        return None

    def treated(self, site: CheckSite, decision: Accepted) -> Treated:
        """Return how an instruction is executed that `decide` has decided about."""
        del decision
        looked = self.look(site)
        assert isinstance(looked, Treated)
        return looked

    def change(self, leaving: Iterable[Way], entering: Iterable[Way]) -> None:
        """Remove the probes of many sites, and put others in place."""
        for way in leaving:
            way.leave()
        for way in entering:
            way.enter()


class PidProber(Prober):
    """The pid provider: probes before and after the instruction, scratch space far and near."""

    def __init__(self, cpu: TrialCpu, near: int, rules: Rules) -> None:
        super().__init__(cpu.kernel.traps)
        framework = CountingListener()
        self._cpu = cpu
        self._own = rules.own
        self._fasttrap = fasttrap.Fasttrap(cpu.kernel, framework, rules.fidelity, port=rules.pid)
        self._target = target = self._fasttrap.target(cpu.process)
        target.patcher = rules.patcher(target.code)
        self._far = target.slots
        self._near: Slots = SlotPages(cpu.kernel.code(cpu.process), CHUNK, "[fasttrap]", below=near)

    def look(self, site: CheckSite) -> Treated | NoProbe:
        """Decide about a site (fasttrap_tracepoint_init)."""
        decision = self._fasttrap.points.look(self._target, site.address, site.start)
        if isinstance(decision, Refused):
            return NoProbe(f"{decision.rule.why} ({decision.rule.source})")
        return self.treated(site, decision)

    def treated(self, site: CheckSite, decision: Accepted) -> Treated:
        """Return how an instruction is executed (`Prober`)."""
        if isinstance(decision, Emulated):
            return Treated(f"emulated: {decision.plan}", tuple(self._ways("emulated", site)))
        assert isinstance(decision, OutOfLine)
        scratch = f", {decision.scratch} = next pc" if decision.scratch else ""
        places = (("far", self._far), ("near", self._near))
        ways = tuple(way for name, slots in places for way in self._ways(f"out of line, {name}", site, slots))
        return Treated(f"out of line: {decision.code.hex()}{scratch}", ways)

    def decide(self, site: CheckSite) -> Accepted | None:
        """Return how the instruction is displaced (`Prober`)."""
        found = self._fasttrap.points.look(self._target, site.address, site.start) if self._own else None
        return None if isinstance(found, Refused) else found

    def change(self, leaving: Iterable[Way], entering: Iterable[Way]) -> None:
        """Do so while the instructions that have one of both stay patched (`Prober`)."""
        with self._fasttrap.points.together():
            for way in entering:
                way.enter()
            for way in leaving:
                way.leave()

    def _ways(self, name: str, site: CheckSite, slots: Slots | None = None) -> Iterator[Way]:
        yield self._way(name, site, ProbeType.OFFSETS, slots)
        yield self._way(f"{name}, and a probe after it", site, ProbeType.POST_OFFSETS, slots)

    def _way(self, name: str, site: CheckSite, kind: ProbeType, slots: Slots | None) -> Way:
        probe = Probe(self._target, kind, site.address, 1, (site.address,))

        def enter() -> None:
            self._target.slots = slots or self._far
            self._fasttrap.enable(probe)

        def leave() -> None:
            self._fasttrap.disable(probe)
            self._fasttrap.release(self._cpu.thread)  # its scratch space is free again

        return Way(name, enter, leave)


class UprobeProber(Prober):
    """Uprobes: simulated, or stepped in a slot far from the instruction and near."""

    def __init__(self, cpu: TrialCpu, near: int, rules: Rules) -> None:
        super().__init__(cpu.kernel.traps)
        self._cpu = cpu
        self._own = rules.own
        self._listener = CountingListener()
        self._uprobes = uprobes.Uprobes(cpu.kernel, rules.fidelity, rules.uprobe)
        self._space = space = self._uprobes.watch(cpu.process)
        space.patcher = rules.patcher(space.code)
        self._far = space.slots
        self._near = SlotPages(space.code, self._uprobes.port.slot, "[uprobes]", below=near)

    def look(self, site: CheckSite) -> Treated | NoProbe:
        """Decide about a site (prepare_uprobe)."""
        file, offset = self._cpu.file_at(site.address)
        if offset % self._uprobes.port.alignment:
            return NoProbe(f"not a multiple of {self._uprobes.port.alignment}")
        decision = self._treat(file, offset, site.address)
        if isinstance(decision, Refused):
            return NoProbe(f"{decision.rule.why} ({decision.rule.source})")
        return self.treated(site, decision)

    def treated(self, site: CheckSite, decision: Accepted) -> Treated:
        """Return how an instruction is executed (`Prober`)."""
        file, offset = self._cpu.file_at(site.address)
        consumer = uprobes.Consumer(handler=lambda _frame: None, runs=self._listener.native_runs(0))
        registered: list[Any] = []

        def way(name: str, slots: SlotPages) -> Way:
            def enter() -> None:
                self._space.slots = slots
                registered.append(self._uprobes.register(file, offset, consumer))

            return Way(name, enter, lambda: self._uprobes.unregister(registered.pop(), consumer))

        if isinstance(decision, Emulated):
            return Treated(f"simulated: {decision.plan}", (way("simulated", self._far),))
        assert isinstance(decision, Stepped)
        scratch = f", {decision.scratch} = next pc" if decision.scratch else ""
        return Treated(
            f"stepped: {decision.code.hex()}{scratch}",
            (way("stepped, far", self._far), way("stepped, near", self._near)),
        )

    def decide(self, site: CheckSite) -> Accepted | None:
        """Return how the instruction is displaced (`Prober`)."""
        file, offset = self._cpu.file_at(site.address)
        if not self._own or offset % self._uprobes.port.alignment:
            return None
        found = self._treat(file, offset, site.address)
        return None if isinstance(found, Refused) else found

    def _treat(self, file: RegularFile, offset: int, address: int) -> Decision:
        start, longest = max(0, offset - REACH), self._uprobes.port.longest
        around = file.read(start, offset - start + longest + REACH)
        code = Code.at(around, offset - start, address, longest=longest, around=REACH)
        return self._uprobes.port.treat(code, self._uprobes.fidelity)


class KernelCode(ProcessCode):
    """A kernel's code in a process; a kernel's breakpoint may be an invalid instruction."""

    def write_code(self, address: int, data: bytes) -> None:
        """Write bytes, and drop what was translated from them.  Raises `BadAddressError`."""
        super().write_code(address, data)
        self.engine.code.refuse_in(address, len(data))


class FbtProber(Prober):
    """FBT: the emulator handles the trap; the plan is executed by machine code, and by Python."""

    def __init__(self, cpu: TrialCpu, module: Module, rules: Rules) -> None:
        listener = CountingListener()
        framework = listener
        patcher = rules.patcher(KernelCode(cpu.engine, cpu.space))
        traps = TrapHandler()
        super().__init__(traps)
        self._provider = fbt.FBT(framework, patcher, traps, cpu.isa, fidelity=rules.fidelity, port=rules.fbt)
        self._provider.provide_module(module)
        self._records = {
            record.address: (number, first)
            for number, (_, first) in enumerate(listener.created, 1)
            for record in first.of_probe()
        }

        self._table = rules.displaced or cpu.isa.stub
        self._native, self._python = (TrialTraps(cpu, traps, patcher, table=rules.displaced) for _ in range(2))
        self._python.use_python()

    def look(self, site: CheckSite) -> Treated | NoProbe:
        """Decide about a site."""
        number, first = self._records[site.address]
        plan = self._table.plan(site.code, site.address)
        return Treated(
            f"emulated: {plan}" if plan is not None else "no plan",
            (
                self._way("emulated", number, first, self._native),
                self._way("emulated by Python", number, first, self._python),
            ),
        )

    def _way(self, name: str, number: int, record: Record, trap: HostTrap) -> Way:
        def enter() -> None:
            trap.attach()
            self._provider.enable(number, record)

        return Way(name, enter, lambda: self._provider.disable(number, record))
