"""fbt:kernel:vfs_read:entry and :return, on a Linux kernel.

Probes are made when they are named: a kernel has tens of thousands of functions.  Places where
Linux refuses a kprobe are refused here, too (`blacklist`).  A function that ends in a jump to
another one has no return there, as on FreeBSD.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Protocol

from emu.displaced.frame import Frame
from emu.engine.hits.hit_steps import Argument, Fire, Number
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.native.guest import LateArguments
from emu.probe.arguments import entry_arguments, late_arguments, results
from emu.support.words import BadAddressError
from providers.base import ArgumentDescription, Framework, Provider
from providers.fbt.fbt import SignatureSource
from providers.fbt.port import ENTRY, RETURN
from providers.linux_kernel.sites import LONGEST, entry_site, return_sites
from providers.linux_kernel.text import Fires, Hook, Text

_AFRAMES: Final = 3


class Functions(Protocol):
    """A source of the functions of a kernel."""

    def functions(self) -> Iterable[Symbol]:
        """Yield all functions by address."""
        ...

    def named(self, name: str) -> Iterable[Symbol]:
        """Yield the functions of a name."""
        ...


@dataclass(slots=True, eq=False)
class _Probe:
    module: str
    function: str
    kind: str
    points: list[tuple[int, int]]
    """Addresses, and their offsets in the function."""
    probe_id: int = 0
    hooks: list[tuple[int, Hook]] = field(default_factory=list)


class LinuxFbt(Provider):
    """The provider fbt of a Linux kernel: entries and returns of its functions.

    `sources` returns the kernel's functions and those of its modules, by module; `matches(pattern,
    name)` matches a description's globs; `forbidden` has the addresses where no
    probe is allowed.
    """

    name = "fbt"

    def __init__(
        self,
        framework: Framework,
        text: Text,
        sources: Callable[[], Iterable[tuple[str, Functions]]],
        *,
        forbidden: Callable[[int], bool],
        matches: Callable[[str, str], bool],
        is_glob: Callable[[str], bool],
        signatures: SignatureSource | None = None,
    ) -> None:
        self._framework = framework
        self._text = text
        self._sources = sources
        self._forbidden = forbidden
        self._matches = matches
        self._is_glob = is_glob
        self._signatures = signatures
        self._known: set[tuple[int, str]] = set()
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probes that a description may match."""
        provider, module, function, name = description or ("", "", "", "")
        if not self._matches(provider, self.name):
            return
        kinds = [kind for kind in (ENTRY, RETURN) if self._matches(name, kind)]
        if not kinds:
            return
        for source, functions in self._sources():
            if self._matches(module, source):
                for symbol in self._functions(functions, function):
                    if not self._forbidden(symbol.value):
                        for kind in kinds:
                            self._provide(source, symbol, kind)

    def _functions(self, functions: Functions, function: str) -> Iterable[Symbol]:
        if function and not self._is_glob(function):
            return functions.named(function)
        return (one for one in functions.functions() if self._matches(function, one.name))

    def _provide(self, module: str, symbol: Symbol, kind: str) -> None:
        if (symbol.value, kind) in self._known:
            return
        self._known.add((symbol.value, kind))
        points = [(address, address - symbol.value) for address in self._addresses(symbol, kind)]
        if points:
            probe = _Probe(module, symbol.name, kind, points)
            probe.probe_id = self._framework.probe_create(self, module, symbol.name, kind, _AFRAMES, probe)

    def _addresses(self, symbol: Symbol, kind: str) -> list[int]:
        """Return the addresses of a probe's breakpoints."""
        isa = self._text.isa
        try:
            if kind == ENTRY:
                found = entry_site(isa, self._text.code(symbol.value, 3 * LONGEST), symbol.value)
                return [] if found is None or self._forbidden(found[0]) else [found[0]]
            code = self._text.code(symbol.value, symbol.size)
        except BadAddressError:
            return []
        return [address for address, _ in return_sites(isa, code, symbol.value)]

    def enable(self, probe_id: int, arg: _Probe) -> None:
        """Write the breakpoints."""
        for address, offset in arg.points:
            hook = self._hook(arg, offset)
            self._text.add(address, hook)
            arg.hooks.append((address, hook))

    def _hook(self, probe: _Probe, offset: int) -> Hook:
        fire, probe_id = self._framework.probe, probe.probe_id

        def entered(frame: Frame) -> None:
            fire(probe_id, *frame.arguments())

        def returns(frame: Frame) -> None:
            first, second = frame.results()
            fire(probe_id, offset, first, second)

        if probe.kind == ENTRY:
            return Hook(entered, lambda: self._fires(probe_id, entry_arguments(self._text.isa)))
        return Hook(returns, lambda: self._fires(probe_id, (Number(offset), *results(self._text.isa))))

    def _fires(self, probe_id: int, arguments: tuple[Argument, ...]) -> Fires:
        """Describe a hit for machine code."""
        runs = self._framework.native_runs(probe_id)
        return (Fire(runs, arguments),) if runs else None

    def disable(self, probe_id: int, arg: _Probe) -> None:
        """Remove the breakpoints."""
        for address, hook in arg.hooks:
            self._text.remove(address, hook)
        arg.hooks.clear()

    def late_arguments(self, probe_id: int, arg: _Probe) -> LateArguments:
        """Return where arguments 5 to 9 are: at a return too, as on entry to a function."""
        return late_arguments(self._text.isa)

    def argument_description(self, probe_id: int, arg: _Probe, index: int) -> ArgumentDescription | None:
        """Return an argument's type; of a return, args[0] is the offset and args[1] the result."""
        if arg.kind == RETURN and index == 0:
            return ArgumentDescription(index, "int")
        signature = self._signatures.signature(arg.module, arg.function) if self._signatures else None
        if signature is None:
            return None
        types = ("int", signature.result) if arg.kind == RETURN else signature.parameters
        return ArgumentDescription(index, types[index]) if index < len(types) else None

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Forget a probe."""
        self._known = {known for known in self._known if known[0] != arg.points[0][0]}
