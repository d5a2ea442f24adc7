"""kinst:kernel:vfs_read:12 and the like: probes at instructions of kernels and their modules.

A probe is made when it is named, by the offset of an instruction or for all of a function.  A place
has no probe if Linux refuses a kprobe there: on its blacklist, at instructions that may fault and
have an entry in the exception table, on ftrace's pad except its first instruction, and between a
load-exclusive and its store; nor if `providers.kinst` refuses the instruction.

Source: FreeBSD sys/cddl/dev/kinst/kinst.c; Linux 6.12 kernel/kprobes.c (check_kprobe_address_safe).
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Refused, Rule
from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import Fire
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.isa.base import Isa
from emu.native.guest import LateArguments
from emu.probe.arguments import late_arguments
from emu.support.words import BadAddressError, decimal
from providers.base import Framework, Provider
from providers.kinst.flow import follow
from providers.kinst.port import PORTS as KINST_PORTS
from providers.linux_kernel.fbt import Functions
from providers.linux_kernel.port import PORTS
from providers.linux_kernel.refusals import Refusals
from providers.linux_kernel.sites import treat
from providers.linux_kernel.text import Fires, Hook, NoPlanError, Text

_AFRAMES: Final = 3
_SOURCE: Final = "Linux 6.12 kernel/kprobes.c"


IN_PAD: Final = Rule(
    "inside ftrace's pad", "ftrace writes the pad as a whole: only its first instruction has a probe", _SOURCE
)


def instructions(isa: Isa, code: bytes, size: int, start: int) -> dict[int, Decision]:
    """Return how each instruction of a function is displaced, by offset.

    `code` is the code of the function, of `size` bytes, and some of what follows.
    """
    port, text = KINST_PORTS[isa.name], PORTS[isa.name]
    body = code[:size]
    landing = text.landing(code)
    pad = range(landing + 1, landing + text.pad(code[landing:]))
    decisions: dict[int, Decision] = {}
    for offset in port.boundaries(body):
        piece = code[offset : offset + port.longest]
        known = treat(isa, piece, start + offset) or port.treat(
            Code.at(code, offset, start + offset, longest=port.longest, around=port.around)
        )
        decisions[offset] = Refused(IN_PAD) if offset in pad else known
    return decisions


@dataclass(slots=True, eq=False)
class _Point:
    address: int
    decision: Emulated | OutOfLine
    framed: bool
    probe_id: int = 0
    hook: Hook | None = None


class LinuxKinst(Provider):
    """The provider kinst of a Linux kernel: instructions of its functions.

    `sources` returns the kernel's functions and those of its modules, by module; `refusals` knows
    the addresses without probes; `matches(pattern, name)` matches a description's globs.
    """

    name = "kinst"

    def __init__(
        self,
        framework: Framework,
        text: Text,
        sources: Callable[[], Iterable[tuple[str, Functions]]],
        *,
        refusals: Refusals,
        matches: Callable[[str, str], bool],
        report: Callable[[str], object] = lambda _text: None,
    ) -> None:
        self._framework = framework
        self._text = text
        self._sources = sources
        self._refusals = refusals
        self._matches = matches
        self._report = report
        self._told = False
        self._known: set[int] = set()
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probes of one function, at an offset or everywhere (KINSTIOC_MAKEPROBE)."""
        if description is None or description[0] != self.name or not description[2]:
            return
        _, module, function, name = description
        offset = decimal(name)
        if name and offset is None:
            return
        for source, functions in self._sources():
            if self._matches(module, source):
                for symbol in functions.named(function):
                    self._provide(source, symbol, offset)

    def _provide(self, module: str, symbol: Symbol, wanted: int | None) -> None:
        for offset, decision, framed in self._look(symbol):
            address = symbol.value + offset
            if wanted in {None, offset} and address not in self._known:
                self._known.add(address)
                point = _Point(address, decision, framed)
                point.probe_id = self._framework.probe_create(self, module, symbol.name, str(offset), _AFRAMES, point)

    def _look(self, symbol: Symbol) -> Iterator[tuple[int, Emulated | OutOfLine, bool]]:
        """Yield the offset and decision of each instruction, and whether the frame exists there."""
        isa, start = self._text.isa, symbol.value
        try:
            code = self._text.code(start, symbol.size + KINST_PORTS[isa.name].longest)
        except BadAddressError:
            return
        decisions = instructions(isa, code, symbol.size, start)
        frames = follow(KINST_PORTS[isa.name], isa, code[: symbol.size], start, decisions)
        for offset, decision in decisions.items():
            address = start + offset
            refused = self._refusals.may_fault(address) or self._refusals.forbids(address)
            if isinstance(decision, Emulated | OutOfLine) and not refused:
                yield offset, decision, frames[offset].made

    def enable(self, probe_id: int, arg: _Point) -> None:
        """Write the breakpoint; report the first one for whose copy there is no room."""
        fire = self._framework.probe

        def hit(_frame: Frame) -> None:
            fire(probe_id)

        hook = Hook(hit, lambda: self._fires(arg), framed=arg.framed)
        try:
            self._text.add(arg.address, hook, arg.decision)
        except NoPlanError as error:
            if not self._told:
                self._told = True
                self._report(f"kinst: no probe at {arg.address:#x}, and at others after it: {error}")
            return
        arg.hook = hook

    def _fires(self, point: _Point) -> Fires:
        runs = self._framework.native_runs(point.probe_id)
        return (Fire(runs, (), framed=point.framed),) if runs else None

    def disable(self, probe_id: int, arg: _Point) -> None:
        """Remove the breakpoint."""
        if arg.hook is not None:
            self._text.remove(arg.address, arg.hook)
            arg.hook = None

    def late_arguments(self, probe_id: int, arg: _Point) -> LateArguments:
        """Return where arguments 5 to 9 are: as on entry to a function."""
        return late_arguments(self._text.isa)

    def destroy(self, probe_id: int, arg: _Point) -> None:
        """Forget a probe."""
        self._known.discard(arg.address)
