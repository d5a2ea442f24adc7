"""The kinst provider: kinst::malloc:17 and the like.

Its probes are at instructions of kernel functions, and are created when they are named.

    provide     a name with a function and an offset, or with no offset for all of them, becomes
                probes
    enable      the probe's breakpoint is installed, and the copy is written to its trampoline
    (a hit)     the probe fires; then the instruction is emulated on the interrupted registers, or
                the thread continues in the trampoline, which leads back: by a jump on x86-64,
                elsewhere by a second breakpoint
    disable     the breakpoint is removed; the trampoline stays, because a thread may be in it

Source: FreeBSD sys/cddl/dev/kinst/kinst.c.
"""

from __future__ import annotations

# ruff: noqa: ARG002  (the contract passes more than is needed)
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Protocol

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Rule
from emu.displaced.frame import Frame
from emu.displaced.plans import Set
from emu.elf.symbols import Symbol
from emu.engine.hits.hit_steps import Fire, Run
from emu.engine.time.clock import VirtualClock
from emu.guest.kernel.trampolines import TrampolinesFullError
from emu.guest.modules import Module
from emu.isa.base import Isa
from emu.native.guest import LateArguments
from emu.probe.arguments import late_arguments
from emu.probe.patcher import Patcher, Tracepoint
from emu.probe.trap import Hit, Served, TrapHandler
from emu.support.words import decimal
from providers import fbt
from providers.base import Framework, Provider
from providers.fbt.exclusions import EXCLUSIONS as FBT_EXCLUSIONS
from providers.fbt.exclusions import excluded, module_name, module_refusal
from providers.fbt.port import Exclusion, Function
from providers.kinst.flow import follow
from providers.kinst.port import PORTS, Frames, Port, hidden_instructions, hide_instructions

_KINST: Final = "FreeBSD sys/cddl/dev/kinst/kinst.c"
EXCLUSIONS: Final = (
    *FBT_EXCLUSIONS,
    Exclusion(Rule("kinst_*", "kinst itself, in a kernel that has it built in", _KINST), prefix="kinst_"),
    Exclusion(
        Rule("context switch", "it changes stacks, or wraps DTrace's fault handler", _KINST),
        names=frozenset({"cpu_switch", "trap_check"}),
    ),
)


_AFRAMES: Final = 3


@dataclass(slots=True, eq=False)
class Point:
    """A probe (struct kinst_probe)."""

    address: int
    module: Module
    tracepoint: Tracepoint
    decision: Emulated | OutOfLine
    frames: Frames
    probe_id: int = 0
    trampoline: int = 0
    """Address of its trampoline; 0: it does not exist (yet)."""

    @property
    def after(self) -> int:
        """The address after the instruction."""
        return self.address + self.decision.length


def look(
    port: Port, isa: Isa, symbol: Symbol, read: Callable[[int, int], bytes]
) -> Iterator[tuple[int, Decision, Frames]]:
    """Yield (offset, decision, frame) for each instruction of a function.

    It yields nothing if the function is excluded.  Raises
    `emu.support.words.BadAddressError`.
    """
    if excluded(symbol.name, (*EXCLUSIONS, *port.exclusions)) is not None:
        return
    scanner = fbt.PORTS[isa.name]
    code = read(symbol.value, symbol.size + max(scanner.lookahead, port.longest))
    if not scanner.scan(Function(symbol.name, symbol.value, symbol.size, code)).sites:
        return
    body = code[: symbol.size]
    decisions = {}
    for offset in port.boundaries(body):
        at = symbol.value + offset
        decisions[offset] = port.treat(Code.at(code, offset, at, longest=port.longest, around=port.around))
    frames = follow(port, isa, body, symbol.value, decisions)
    for offset, decision in decisions.items():
        yield offset, decision, frames[offset]


class CopyMemory(Protocol):
    """Executable memory for trampolines, as `emu.guest.kernel.trampolines.Trampolines`."""

    def take(self, size: int) -> int:
        """Return the address of a piece.  Raises `TrampolinesFullError`."""
        ...

    def fill(self, address: int, code: bytes) -> None:
        """Write code into a piece."""
        ...


class Kinst(Provider):
    """kinst:module:function:offset."""

    name = "kinst"

    def __init__(
        self,
        framework: Framework,
        patcher: Patcher,
        traps: TrapHandler,
        isa: Isa,
        trampolines: CopyMemory,
        clock: VirtualClock,
    ) -> None:
        """Register with the framework and with the chain of breakpoint handlers."""
        self._framework = framework
        self._patcher = patcher
        self._core = traps.core
        self._isa = isa
        self._port = PORTS[isa.name]
        self._trampolines = trampolines
        self._clock = clock
        self._modules: list[Module] = []
        self._points: dict[int, Point] = {}
        self._ends: dict[int, Point] = {}
        """By the address of the breakpoint that ends a trampoline."""
        self._traps = traps
        self._handler = self._invop
        framework.register(self)
        traps.add(self._handler, self._describe)

    def unregistered(self) -> None:
        """Leave the chain."""
        self._traps.remove(self._handler)

    def provide_module(self, module: Module) -> None:
        """Register a module; its probes are created when they are named."""
        if module_refusal(module) is None:
            self._modules.append(module)

    def forget_module(self, module: Module) -> None:
        """Handle the unloading of a module."""
        if module in self._modules:
            self._modules.remove(module)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probes of one function, at an offset or everywhere (KINSTIOC_MAKEPROBE)."""
        if description is None or description[0] != self.name or not description[2]:
            return
        _, wanted, function, name = description
        offset = decimal(name)
        if name and offset is None:
            return
        for module in self._modules:
            if wanted in {"", module.name, module_name(module.name)}:
                for symbol in module.functions():
                    if symbol.name == function:
                        self._provide(module, symbol, offset)

    def _provide(self, module: Module, symbol: Symbol, wanted: int | None) -> None:
        for offset, decision, frames in look(self._port, self._isa, symbol, module.read):
            address = symbol.value + offset
            if not isinstance(decision, Emulated | OutOfLine):
                continue
            if wanted in {None, offset} and address not in self._points:
                tracepoint = self._patcher.create(address, self._port.patch(decision.length), self.name)
                point = self._points[address] = Point(address, module, tracepoint, decision, frames)
                point.probe_id = self._framework.probe_create(
                    self, module.name, symbol.name, str(offset), _AFRAMES, point
                )

    def enable(self, probe_id: int, arg: Point) -> None:
        """Install the breakpoint; without room for a trampoline the probe stays silent."""
        arg.module.enabled += 1
        if isinstance(arg.decision, OutOfLine) and not arg.trampoline and not self._make_trampoline(arg, arg.decision):
            return
        self._patcher.install(arg.tracepoint)

    def late_arguments(self, probe_id: int, arg: Point) -> LateArguments:
        """Return where the interrupted context has argument 5 and up."""
        return late_arguments(self._isa)

    def _make_trampoline(self, point: Point, copied: OutOfLine) -> bool:
        try:
            point.trampoline = self._trampolines.take(self._port.size)
        except TrampolinesFullError:
            return False
        self._trampolines.fill(point.trampoline, self._port.trampoline(copied, point.trampoline, point.address))
        if self._port.trap is not None:
            self._ends[point.trampoline + self._port.trap(copied)] = point
        return True

    def disable(self, probe_id: int, arg: Point) -> None:
        """Remove the breakpoint."""
        arg.module.enabled -= 1
        self._patcher.remove(arg.tracepoint)

    def destroy(self, probe_id: int, arg: Point) -> None:
        """Forget a probe, because its module is unloaded."""
        self._patcher.forget(arg.tracepoint)
        del self._points[arg.address]

    def _invop(self, address: int, frame: Frame, extra: int) -> int:
        """Take a breakpoint (kinst_invop).

        `extra` is the address of the stub's scratch space, if it has one.
        """
        point = self._points.get(address)
        if point is None or not point.tracepoint.installed:
            return self._trampoline_ended(address, frame)
        core = self._core
        core.framed, core.pushed = point.frames.made, point.frames.pushed
        self._framework.probe(point.probe_id)
        core.framed, core.pushed = False, 0
        decision = point.decision
        if isinstance(decision, OutOfLine):
            # The breakpoint is counted as the instruction; the code to which it leads is not the kernel's.
            self._clock.hide(hidden_instructions(self._isa, decision, frame))
            frame.go_to(point.trampoline, self._isa.traps.moved_adds)
            return self._isa.traps.moved
        left = frame.execute(decision.plan, address, self._isa.traps.moved_adds, extra)
        return self._port.pushing if left else self._isa.traps.moved

    def _describe(self, address: int) -> Hit | Served | None:
        """Describe a hit, as `_invop` handles it on the host's path."""
        pc = self._isa.registers.pc
        point = self._points.get(address)
        if point is None or not point.tracepoint.installed:
            ended = self._ends.get(address)
            return None if ended is None else Hit((Run((Set(pc, "", ended.after),)),))
        runs = self._framework.native_runs(point.probe_id)
        if not runs:
            return Served.PYTHON
        fire = Fire(runs, (), framed=point.frames.made, pushed=point.frames.pushed)
        decision = point.decision
        if isinstance(decision, Emulated):
            return Hit((fire,), plan=decision.plan)
        return Hit((fire, Run((hide_instructions(self._clock, decision), Set(pc, "", point.trampoline)))))

    def _trampoline_ended(self, address: int, frame: Frame) -> int:
        """Go back to the code after the original (kinst_jump_next_instr)."""
        point = self._ends.get(address)
        if point is None:
            return 0
        frame.go_to(point.after, self._isa.traps.moved_adds)
        return self._isa.traps.moved
