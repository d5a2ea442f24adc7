"""proc:::exec-success and the like: DTrace's own names for events in a Linux kernel.

Each of the four providers is made of the rows of `events`.  Module and function of a probe's name
are those of the place where it fires: `kernel`, and the function or nothing.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import Argument, Fire, Number
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.native.guest import LateArguments
from emu.probe.arguments import entry_arguments, results
from emu.support.bad_address import BadAddressError
from providers.base import ArgumentDescription, Framework, Provider
from providers.linux_kernel.events import At, Event
from providers.linux_kernel.native_events import NativeEvent
from providers.linux_kernel.registrations import Hit, Listener, Registrations
from providers.linux_kernel.sites import LONGEST, entry_site, return_sites
from providers.linux_kernel.text import Fires, Hook, NoPlanError, Text
from providers.linux_kernel.values import Constant, Value, value_of

_AFRAMES: Final = 2


@dataclass(slots=True, eq=False)
class _Probe:
    event: Event
    place: str
    """The tracepoint, or the function."""
    probe_id: int = 0
    listener: Listener | None = None
    hooks: list[tuple[int, Hook]] | None = None
    native: NativeEvent | None = None
    entered: dict[int, tuple[int, ...]] = field(default_factory=dict)
    """The arguments of the calls that tasks are in, for an event `of_entry`."""


class NamedProbes(Provider):
    """One provider; `matches(pattern, name)` matches a description's globs."""

    def __init__(
        self,
        name: str,
        events: tuple[Event, ...],
        framework: Framework,
        guest: LinuxKernelGuest,
        text: Text,
        registrations: Registrations,
        *,
        matches: Callable[[str, str], bool],
    ) -> None:
        self.name = name
        self._events = events
        self._framework = framework
        self._guest = guest
        self._text = text
        self._registrations = registrations
        self._matches = matches
        self._provided = False
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make all probes, as soon as a description may match one."""
        if self._provided or not self._matches((description or ("",))[0], self.name):
            return
        self._provided = True
        for event in self._events:
            place = next(filter(self._is_there(event), event.places), None)
            if place is not None:
                function = "" if event.at is At.TRACEPOINT else place
                probe = _Probe(event, place)
                probe.probe_id = self._framework.probe_create(self, MODULE, function, event.name, _AFRAMES, probe)

    def _is_there(self, event: Event) -> Callable[[str], bool]:
        if event.at is At.TRACEPOINT:
            return self._registrations.has
        return lambda name: bool(self._places(event.at, name))

    def _places(self, at: At, name: str) -> list[int]:
        """Return the places of the breakpoints of a function's event."""
        symbol: Symbol | None = self._guest.facts.symbols.get(name)
        if symbol is None:
            return []
        isa, start = self._text.isa, symbol.value
        try:
            if at is At.RETURN:
                code = self._text.code(start, symbol.size)
                return [address for address, _ in return_sites(isa, code, start)]
            found = entry_site(isa, self._text.code(start, 3 * LONGEST), start)
        except BadAddressError:
            return []
        return [] if found is None else [found[0]]

    # -- firing

    def _call(self, probe: _Probe, passed: tuple[int, ...]) -> None:
        event, guest = probe.event, self._guest
        if event.holds is None or value_of(event.holds, guest, passed):
            self._framework.probe(probe.probe_id, *(value_of(shown.value, guest, passed) for shown in event.shown))

    def _fires(self, probe: _Probe, passed: tuple[Argument, ...], hit: Hit | None = None) -> Fires:
        """Describe a hit of a function for machine code, or that of a tracepoint.

        Arguments that are kept from the entry of a function are left to Python.
        """
        event, runs = probe.event, self._framework.native_runs(probe.probe_id)
        if not runs or event.of_entry:
            return None
        found = [self._location(shown.value, passed) for shown in event.shown]
        arguments = tuple(argument for argument in found if argument is not None)
        if event.holds is None and len(arguments) == len(found):
            fire = Fire(runs, arguments)
            return (fire if hit is None else hit.fire(fire),)
        if probe.native is None:
            probe.native = NativeEvent(self._guest, event, passed, "" if hit is None else hit.mark)
        return probe.native.steps(runs, hit)

    def _location(self, value: Value, passed: tuple[Argument, ...]) -> Argument | None:
        """Return where an argument is; None: it has to be computed."""
        match value:
            case int():
                return passed[value]
            case Constant(number):
                return Number(number)
        return None

    def _hook(self, probe: _Probe) -> Hook:
        isa, at_return = self._text.isa, probe.event.at is At.RETURN
        passed = results(isa) if at_return else entry_arguments(isa)

        def hit(frame: Frame) -> None:
            if probe.event.of_entry:
                arguments = probe.entered.pop(self._guest.tasks.current(), None)
            else:
                arguments = frame.results() if at_return else frame.arguments()
            if arguments is not None:
                self._call(probe, arguments)

        return Hook(hit, lambda: self._fires(probe, passed))

    def enable(self, probe_id: int, arg: _Probe) -> None:
        """Switch the tracepoint on, or write the breakpoints."""
        if arg.event.at is At.TRACEPOINT:
            listener = Listener(
                lambda passed: self._call(arg, passed), lambda hit: self._fires(arg, hit.arguments, hit)
            )
            if self._registrations.add(arg.place, listener):
                arg.listener = listener
            return
        arg.hooks = []
        self._add(arg, arg.event.at, self._hook(arg))
        if arg.event.of_entry:
            self._add(arg, At.ENTRY, Hook(self._enters(arg)))

    def _add(self, probe: _Probe, at: At, hook: Hook) -> None:
        assert probe.hooks is not None
        for address in self._places(at, probe.place):
            try:
                self._text.add(address, hook)
            except NoPlanError:
                continue
            probe.hooks.append((address, hook))

    def _enters(self, probe: _Probe) -> Callable[[Frame], None]:
        def enters(frame: Frame) -> None:
            probe.entered[self._guest.tasks.current()] = frame.arguments()

        return enters

    def disable(self, probe_id: int, arg: _Probe) -> None:
        """Switch it off, or remove them."""
        if arg.listener is not None:
            self._registrations.remove(arg.place, arg.listener)
            arg.listener = None
        for address, hook in arg.hooks or ():
            self._text.remove(address, hook)
        arg.hooks = None
        arg.entered.clear()

    def argument_description(self, probe_id: int, arg: _Probe, index: int) -> ArgumentDescription | None:
        """Return an argument's native and translated type."""
        shown = arg.event.shown[index] if index < len(arg.event.shown) else None
        if shown is None or not shown.native:
            return None
        return ArgumentDescription(index, shown.native, shown.translated, index)

    def late_arguments(self, probe_id: int, arg: _Probe) -> LateArguments:
        """Return that arguments 5 to 9 are 0: those of the place are not the probe's."""
        return LateArguments.NONE

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Forget the probes: all are made again together."""
        self._provided = False
