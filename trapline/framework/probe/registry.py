"""Providers and their probes, and what each probe runs when it fires.

Source: FreeBSD dtrace.c, the provider interface (dtrace_register(), dtrace_probe_create(),
dtrace_probe() ...).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any, Final

from emu.guest.modules import Module
from providers.base import Provider
from trapline.framework.base.probes import Probe, ProbeTable
from trapline.framework.base.program import PROVIDER_NAME_MAX, ProbeDescription
from trapline.framework.base.world import World
from trapline.framework.probe.ecb import Ecb, Run
from trapline.framework.probe.meta import MetaProvider
from trapline.framework.probe.runs import NativeRuns

# From this number of enablings on, one function runs all enablings of a probe.
_FEW: Final = 2


class Registry:
    """The probes of all providers, and what each runs.  Implements `providers.base.Framework`."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.table = ProbeTable()
        self._providers: dict[str, Provider] = {}
        self._modules: list[Module] = []
        self._told: list[Callable[[], None]] = []
        """Called when probes were created."""
        self._enablings: dict[int, list[Ecb]] = {}
        """By probe id: its enablings, of all consumers, in the order of enabling."""
        self._runs: dict[int, Run] = {}
        """By the id of a probe that has fired: what runs its enablings."""
        self._native = NativeRuns()
        self.wrapped: Callable[[Probe, Run], Run] = lambda _probe, run: run
        """Puts a function around what runs a probe's enablings, of all that fire first later."""
        self.meta = MetaProvider(self)
        self.error = self.table.match(ProbeDescription("dtrace", name="ERROR"))[0]

    # The interface for providers

    def register(self, provider: Provider) -> None:
        """Add a provider, and let it provide.  Raises ValueError for an illegal or used name."""
        name = provider.name
        numbered = name[-1:].isdigit() and not provider.of_process
        if not name.isidentifier() or len(name) >= PROVIDER_NAME_MAX or numbered:
            raise ValueError(f"'{name}' cannot be the name of a provider")
        if name in self._providers:
            raise ValueError(f"a provider named '{name}' exists already")
        self._providers[name] = provider
        for module in self._modules:
            provider.provide_module(module)

    def unregister(self, provider: Provider) -> None:
        """Remove a provider and its probes.  Raises ValueError while a probe is enabled."""
        probes = [probe for probe in self.table if probe.provider is provider]
        enabled = next((probe for probe in probes if self.enablings(probe)), None)
        if enabled is not None:
            raise ValueError(f"provider '{provider.name}' is in use: {enabled.description} is enabled")
        for probe in probes:
            self.table.remove(probe)
            provider.destroy(probe.id, probe.arg)
        del self._providers[provider.name]

    def probe_create(self, provider: Provider, module: str, function: str, name: str, aframes: int, arg: Any) -> int:
        """Create a probe and return its id."""
        return self.table.create(provider, module, function, name, aframes, arg).id

    def probe_lookup(self, provider: Provider, module: str, function: str, name: str) -> int:
        """Return the id of an existing probe of this provider, or 0."""
        probe = self.table.lookup(provider, module, function, name)
        return 0 if probe is None else probe.id

    def probe_arg(self, provider: Provider, probe_id: int) -> Any:
        """Return the `arg` a probe was created with, None if it is not the provider's."""
        probe = self.table.get(probe_id)
        return probe.arg if probe is not None and probe.provider is provider else None

    def native_runs(self, probe_id: int) -> int:
        """Return the address of the code that fires a probe (`trapline.framework.probe.runs`).

        The address is the same for the life of the probe; the content there may change.
        """
        if probe_id not in self._native:
            self._native.set(probe_id, _native_pairs(self._enablings.get(probe_id, ())))
        return self._native.address(probe_id)

    def probe(self, probe_id: int, arg0: int = 0, arg1: int = 0, arg2: int = 0, arg3: int = 0, arg4: int = 0) -> None:
        """Fire a probe: run its enablings in the order of enabling (dtrace_probe)."""
        run = self._runs.get(probe_id) or self._run_of(probe_id)
        if run is not None:
            run((arg0, arg1, arg2, arg3, arg4))

    def _run_of(self, probe_id: int) -> Run | None:
        """Return what runs a probe's enablings, for the first time; None: it has none."""
        run, probe = _in_order(self._enablings.get(probe_id, ())), self.table.get(probe_id)
        if run is None or probe is None:
            return None
        self._runs[probe_id] = found = self.wrapped(probe, run)
        return found

    # The interface for consumers and for the machine

    def enablings(self, probe: Probe) -> Sequence[Ecb]:
        """Return the enablings of a probe, of all consumers, in the order of enabling."""
        return self._enablings.get(probe.id, ())

    # The interface for consumers and for the machine

    def watch(self, told: Callable[[], None]) -> None:
        """Let a function be called when probes were created."""
        self._told.append(told)

    def unwatch(self, told: Callable[[], None]) -> None:
        """Undo `watch`; there may have been none."""
        if told in self._told:
            self._told.remove(told)

    def probes_created(self) -> None:
        """Link enabled clauses to the probes that were created since (dtrace_enabling_matchall)."""
        for told in self._told:
            told()

    def load_module(self, module: Module) -> None:
        """Offer a kernel module to every provider, also to later ones (dtrace_module_loaded).

        Clauses that are enabled already are enabled in the module, too.
        """
        self._modules.append(module)
        for provider in self._providers.values():
            provider.provide_module(module)
        self.probes_created()

    def unload_module(self, module: Module) -> bool:
        """Destroy a module's probes.

        False, and nothing is done, while one is enabled (dtrace_module_unloaded).
        """
        probes = [probe for probe in self.table if probe.module in {module.name, module.name.removesuffix(".ko")}]
        if any(map(self.enablings, probes)):
            return False
        self._modules.remove(module)
        for probe in probes:
            self.table.remove(probe)
            probe.provider.destroy(probe.id, probe.arg)
        for provider in self._providers.values():
            provider.forget_module(module)
        return True

    def provider(self, name: str) -> Provider | None:
        """Return a provider by its name."""
        return self._providers.get(name)

    def refusal(self, wanted: ProbeDescription) -> str:
        """Return why no probe can match a description, as its provider says; "": it does not say."""
        provider = self._providers.get(wanted.provider)
        return provider.refusal(wanted.name) if provider is not None else ""

    def match(self, wanted: ProbeDescription) -> Sequence[Probe]:
        """Let the providers create the probes of a description; return the probes that match."""
        names = (wanted.provider, wanted.module, wanted.function, wanted.name)
        for provider in self._providers.values():
            provider.provide(names)
        return self.table.match(wanted)

    def link(self, ecbs: Iterable[Ecb]) -> None:
        """Add enablings; the first of a probe arms it."""
        armed = []
        for ecb in ecbs:
            probe = ecb.probe
            present = self._enablings.setdefault(probe.id, [])
            present.append(ecb)
            self.relink(probe)
            if len(present) == 1:
                armed.append(probe)
        for provider, probes in groupby(armed, key=_provider):
            provider.enable_all([(probe.id, probe.arg) for probe in probes])

    def unlink(self, ecbs: Iterable[Ecb]) -> None:
        """Remove enablings; the last one of a probe disarms it."""
        gone = dict.fromkeys(ecbs)
        disarmed = []
        for probe in {ecb.probe: None for ecb in gone}:
            left = [ecb for ecb in self._enablings.pop(probe.id, ()) if ecb not in gone]
            if left:
                self._enablings[probe.id] = left
            else:
                disarmed.append(probe)
            self.relink(probe)
        for provider, probes in groupby(disarmed, key=_provider):
            provider.disable_all([(probe.id, probe.arg) for probe in probes])

    def relink(self, probe: Probe) -> None:
        """Forget the function that runs a probe's enablings; update what machine code runs."""
        self._runs.pop(probe.id, None)
        if probe.id in self._native:
            self._native.set(probe.id, _native_pairs(self.enablings(probe)))

    def fire_meta(self, name: str, consumer: int, *rest: int) -> None:
        """Fire BEGIN, END or ERROR for one consumer, by the address that it has as arg0."""
        probe = self.table.lookup(self.meta, "", "", name)
        assert probe is not None
        run = self._runs.get(probe.id) or self._run_of(probe.id)
        if run is not None:
            run((consumer, *rest, *(0,) * (4 - len(rest))))


def _provider(probe: Probe) -> Provider:
    return probe.provider


def _native_pairs(ecbs: Sequence[Ecb]) -> Sequence[int]:
    """Return the machine code of enablings, (run, ecb) for each; none if one of them has none."""
    pairs: list[int] = []
    started: set[tuple[int, ...]] = set()
    for ecb in ecbs:
        native = ecb.clause.form.native
        if native is None:
            return ()
        if native.start not in started:
            pairs += native.start
            started.add(native.start)
        pairs += (native.address, native.words(ecb))
    return pairs


def _in_order(ecbs: Sequence[Ecb]) -> Run | None:
    """Return the function that runs enablings; for two or more it also includes later ones.

    A single enabling, which is the usual case, runs itself.
    """
    if len(ecbs) < _FEW:
        return ecbs[0].run if ecbs else None

    def run_all(args: tuple[int, ...]) -> None:
        for ecb in ecbs:
            ecb.run(args)

    return run_all
