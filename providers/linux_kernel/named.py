"""proc:::exec-success and the like: DTrace's own names for events in a Linux kernel.

Each of the four providers is made of the rows of `events`.  Module and function of a probe's name
are those of the code where it fires: `kernel`, and the function or nothing.

In machine code the function `happens(tracepoint, core)` decides whether an event happens, and
computes its arguments.  It is a step of a hit (`emu.engine.hits.hit_steps.Call`), before the one
that fires the probe, which it leaves out if the event does not happen.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.hits.firing_code import GO_ON, SKIP
from emu.engine.hits.hit_steps import ARGUMENTS, Argument, Call, Fire, HitStep, InMemory, Number, Register
from emu.engine.hits.tracepoint_blocks import Firing
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.native.builder import Function, Module
from emu.native.guest import LateArguments
from emu.native.link import Linked
from emu.native.operations import Word
from emu.probe.arguments import entry_arguments, results
from emu.support.words import WORD_MASK, BadAddressError
from providers.base import ArgumentDescription, Framework, Provider
from providers.linux_kernel.events import (
    AsInt,
    At,
    Choice,
    Constant,
    Current,
    Event,
    Field,
    Masked,
    Negated,
    Same,
    Value,
    Within,
    value_of,
)
from providers.linux_kernel.registrations import Hit, Listener, Registrations
from providers.linux_kernel.sites import LONGEST, entry_site, return_sites
from providers.linux_kernel.text import Fires, Hook, NoPlanError, Text

# The words of an event, by the names under which its step reads them.
_ARGUMENTS: Final = tuple(f"%argument {number} of an event" for number in range(ARGUMENTS))
_BASE: Final = "%base {} of an event"
_WORD: Final = 8
_INT_BITS: Final = 32


class NativeEvent:
    """One event's function, linked for one kernel.

    `passed` is what the tracepoint or function passes; `mark` is the register with the address
    of the tracepoint that is hit.
    """

    def __init__(self, guest: LinuxKernelGuest, event: Event, passed: tuple[Argument, ...], mark: str) -> None:
        self._shown = len(event.shown)
        code = _Code(guest, passed)
        code.write(event, mark)
        tracepoints = guest.engine.tracepoints
        self._blocks = []
        symbols = {
            "env": guest.engine.cpu.env,
            "argument": tracepoints.argument,
            **{f"shown{number}": tracepoints.temporary(name) for number, name in enumerate(_ARGUMENTS)},
            **{f"base{number}": tracepoints.temporary(_BASE.format(number)) for number in range(code.bases)},
        }
        for number, argument in enumerate(code.read):
            block = Firing()
            tracepoints.locate(block, (argument,))
            self._blocks.append(block)
            symbols[f"read{number}"] = block.address
        self._linked = Linked(code.module.compiled("event"), symbols)

    def steps(self, runs: int, hit: Hit | None) -> tuple[HitStep, ...]:
        """Return the steps of a hit of a tracepoint; None: it is in a function."""
        fire = Fire(runs, tuple(map(Register, _ARGUMENTS[: self._shown])))
        happens = Call(self._linked.address("happens"), 0 if hit is None else hit.tracepoint, asks=False)
        return happens, (fire if hit is None else hit.fire(fire))


class _Code:
    """Writes the function into `module`; `read` are the locations that it reads."""

    def __init__(self, guest: LinuxKernelGuest, passed: tuple[Argument, ...]) -> None:
        self.module = Module()
        self.read: list[Argument] = []
        self.bases = 0
        """The number of addresses of structures."""
        self._guest = guest
        self._passed = passed

    def write(self, event: Event, mark: str) -> None:
        """Write `happens`."""
        f = self.module.function("happens", 2)
        tracepoint, _core = f.parameters
        if mark:
            hit = f.load(self.module.symbol("env"), _WORD * self._guest.isa.registers.slots[mark])
            f.ret_if(f.ne(hit, tracepoint), SKIP)
        if event.holds is not None:
            f.ret_if(f.eq(self._value(f, event.holds), 0), SKIP)
        for number, shown in enumerate(event.shown):
            f.store(self.module.symbol(f"shown{number}"), self._value(f, shown.value))
        f.ret(GO_ON)

    def _value(self, f: Function, value: Value) -> Word:
        """Write what computes a value, as `value_of` does."""
        match value:
            case int():
                return self._location(f, self._passed[value])
            case Constant(number):
                return f.word(number & WORD_MASK)
            case Current():
                tasks = self._guest.tasks
                variable = tasks.variable
                return self._location(f, InMemory("", variable, _WORD) if variable else Register(tasks.abi.current))
            case Field(base, structure, member, size):
                number, self.bases = self.bases, self.bases + 1
                f.store(self.module.symbol(f"base{number}"), self._value(f, base))
                offset = self._guest.facts.btf.offset(structure, member)
                return self._location(f, InMemory(_BASE.format(number), offset, size))
            case AsInt(one):
                return f.ashr(f.shl(self._value(f, one), _INT_BITS), _INT_BITS)
            case Masked(one, mask):
                return f.and_(self._value(f, one), mask)
            case Negated(one):
                return f.sub(0, self._value(f, one))
            case Within(one, first, last):
                return f.flag(f.ule(f.sub(self._value(f, one), first & WORD_MASK), last - first))
            case Same(left, right):
                return f.flag(f.eq(self._value(f, left), self._value(f, right)))
            case Choice(test, taken, other):
                return f.select(f.ne(self._value(f, test), 0), self._value(f, taken), self._value(f, other))

    def _location(self, f: Function, argument: Argument) -> Word:
        """Read a register, or memory: 0 if none is mapped there."""
        self.read.append(argument)
        block = self.module.symbol(f"read{len(self.read) - 1}")
        return f.call(self.module.symbol("argument"), block, 0)


_AFRAMES: Final = 2


@dataclass(slots=True, eq=False)
class _Probe:
    event: Event
    target: str
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
            target = next(filter(self._is_there(event), event.targets), None)
            if target is not None:
                function = "" if event.at is At.TRACEPOINT else target
                probe = _Probe(event, target)
                probe.probe_id = self._framework.probe_create(self, MODULE, function, event.name, _AFRAMES, probe)

    def _is_there(self, event: Event) -> Callable[[str], bool]:
        if event.at is At.TRACEPOINT:
            return self._registrations.has
        return lambda name: bool(self._addresses(event.at, name))

    def _addresses(self, at: At, name: str) -> list[int]:
        """Return the addresses of the breakpoints of a function's event."""
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
            if self._registrations.add(arg.target, listener):
                arg.listener = listener
            return
        arg.hooks = []
        self._add(arg, arg.event.at, self._hook(arg))
        if arg.event.of_entry:
            self._add(arg, At.ENTRY, Hook(self._enters(arg)))

    def _add(self, probe: _Probe, at: At, hook: Hook) -> None:
        assert probe.hooks is not None
        for address in self._addresses(at, probe.target):
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
            self._registrations.remove(arg.target, arg.listener)
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
        """Return that arguments 5 to 9 are 0: those of the function are not the probe's."""
        return LateArguments.NONE

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Forget the probes: all are made again together."""
        self._provided = False
