"""sdt:kernel:sched:sched_switch: the tracepoints of a Linux kernel and its modules.

The function of a probe's name is the tracepoint's subsystem, as in /sys/kernel/tracing/events.
`registrations` documents how a tracepoint is switched on.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Protocol

from emu.engine.hits.hit_steps import Fire
from emu.guest.linux_kernel.files.facts import is_function
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.native.guest import LateArguments
from emu.support.words import BadAddressError
from providers.base import ArgumentDescription, Framework, Provider
from providers.linux_kernel.registrations import (
    PREFIX,
    Hit,
    Listener,
    Registrations,
    argument,
    later_arguments,
    tracepoint_name,
)
from providers.linux_kernel.text import Fires

_EVENT: Final = "event_"
_AFRAMES: Final = 2
_WORD: Final = 8
_LONGEST_NAME: Final = 64


class TypeSource(Protocol):
    """A source of the types of tracepoints."""

    def tracepoint(self, module: str, name: str) -> tuple[str, ...] | None:
        """Return the types of the arguments of a module's tracepoint, None if they are not known."""
        ...


@dataclass(slots=True, eq=False)
class _Probe:
    module: str
    name: str
    probe_id: int = 0
    listener: Listener | None = None


class Tracepoints(Provider):
    """The provider sdt of a Linux kernel; `matches(pattern, name)` matches a description's globs."""

    name = "sdt"

    def __init__(
        self,
        framework: Framework,
        guest: LinuxKernelGuest,
        registrations: Registrations,
        *,
        matches: Callable[[str, str], bool],
        types: TypeSource,
    ) -> None:
        self._framework = framework
        self._guest = guest
        self._registrations = registrations
        self._matches = matches
        self._types = types
        self._symbols = guest.facts.symbols
        self._known: set[tuple[str, str]] = set()
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probes that a description may match."""
        provider, module, function, name = description or ("", "", "", "")
        if not self._matches(provider, self.name):
            return
        for source, plain, event in self._all():
            if (source, plain) in self._known or not (self._matches(name, plain) and self._matches(module, source)):
                continue
            system = self._system(event)
            if self._matches(function, system):
                self._known.add((source, plain))
                probe = _Probe(source, plain)
                probe.probe_id = self._framework.probe_create(self, source, system, plain, _AFRAMES, probe)

    def _all(self) -> Iterator[tuple[str, str, int]]:
        """Yield module, name and event of each tracepoint, those of the kernel first."""
        for name in self._names:
            event = self._symbols.get(_EVENT + name)
            yield MODULE, name, event.value if event else 0
        for module in self._guest.modules.all():
            for symbol in module.variables:
                name = tracepoint_name(symbol)
                if name:
                    yield module.name, name, module.variables.get(_EVENT + name, 0)

    @cached_property
    def _names(self) -> tuple[str, ...]:
        """The kernel's tracepoints."""
        found = (symbol for symbol in self._symbols.starting(PREFIX) if not is_function(symbol))
        return tuple(filter(None, (tracepoint_name(symbol.name) for symbol in found)))

    def _system(self, event: int) -> str:
        """Return the subsystem of an event's tracepoint, "" if it has no event in tracefs."""
        if not event:
            return ""
        btf, load = self._guest.facts.btf, self._guest.engine.load
        try:
            kind = load(event + btf.offset("trace_event_call", "class"), _WORD)
            text = load(kind + btf.offset("trace_event_class", "system"), _WORD)
            return self._guest.load(text, _LONGEST_NAME).split(b"\0", 1)[0].decode("ascii", "replace")
        except BadAddressError:
            return ""

    def enable(self, probe_id: int, arg: _Probe) -> None:
        """Enable a tracepoint; if the kernel cannot switch it on, it never fires."""
        fire, framework = self._framework.probe, self._framework

        def call(arguments: tuple[int, ...]) -> None:
            fire(probe_id, *arguments)

        def native(hit: Hit) -> Fires:
            runs = framework.native_runs(probe_id)
            return (hit.fire(Fire(runs, hit.arguments, late=later_arguments(self._guest.isa))),) if runs else None

        listener = Listener(call, native)
        if self._registrations.add(arg.name, listener, arg.module):
            arg.listener = listener

    def disable(self, probe_id: int, arg: _Probe) -> None:
        """Switch the tracepoint off."""
        if arg.listener is not None:
            self._registrations.remove(arg.name, arg.listener, arg.module)
            arg.listener = None

    def argument_description(self, probe_id: int, arg: _Probe, index: int) -> ArgumentDescription | None:
        """Return an argument's type."""
        types = self._types.tracepoint(arg.module, arg.name)
        return ArgumentDescription(index, types[index]) if types is not None and index < len(types) else None

    def argument_value(self, probe_id: int, arg: _Probe, index: int) -> int:
        """Return argument 5 and up.  Raises `BadAddressError`."""
        frame = self._guest.traps.core.trapframe
        return 0 if frame is None else argument(frame, self._guest.isa, index)

    def late_arguments(self, probe_id: int, arg: _Probe) -> LateArguments:
        """Return where machine code finds them: the hit says it."""
        return LateArguments.HIT

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Forget a probe."""
        self._known.discard((arg.module, arg.name))
