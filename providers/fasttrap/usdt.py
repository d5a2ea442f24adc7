"""USDT: the markers of programs as probes, `provider$target:::name`.

On FreeBSD a program registers its probes by DOF; Linux programs have notes instead (`emu.stapsdt`), which say the same.
Provider names get the process's number, and `__` in a probe's name becomes `-`, as `dtrace -G` does it.

Source: FreeBSD fasttrap.c (fasttrap_meta_create_probe: names, tracepoints of one probe); libdtrace dt_link.c (names).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from emu.elf import ElfError
from emu.frame import Frame
from emu.guest.base import BadAddressError
from emu.guest.objects import LoadedObject
from emu.stapsdt import Marker, MarkerArgument, MarkerArgumentError, evaluate, markers, parse_arguments
from providers.fasttrap.fasttrap import Fasttrap
from providers.fasttrap.pid import PidError, PidProvider
from providers.fasttrap.records import Probe, ProbeType

if TYPE_CHECKING:
    from emu.guest.processes import Objects, Process
    from providers.base import Framework

_AFRAMES = 3


class _Name(NamedTuple):
    provider: str
    module: str
    function: str
    name: str


def probe_name(marker: str) -> str:
    """Return the name of a marker's probe."""
    return marker.replace("__", "-")


class UsdtProbes:
    """Makes the probes of the markers in processes, when somebody asks for a provider with a process's number."""

    def __init__(self, fasttrap: Fasttrap, framework: Framework, objects: Objects) -> None:
        self._fasttrap = fasttrap
        self._framework = framework
        self._objects = objects
        self._providers: dict[str, PidProvider] = {}
        self._made: set[_Name] = set()

    def provide(self, provider: str, pid: int) -> None:
        """Make the probes of a provider's markers.  Raises `PidError` if there is no such process."""
        process = self._fasttrap.kernel.process(pid)
        if process is None or not process.alive:
            raise PidError("D_PROC_GRAB", f"failed to grab process {pid}: there is no such process in the guest")
        for loaded in self._objects.of(process):
            for name, sites in self._sites(loaded, provider).items():
                self._create(process, loaded, name, sites)

    def _sites(self, loaded: LoadedObject, provider: str) -> dict[_Name, list[Marker]]:
        """Return the places of each marker: one probe for those in one function."""
        sites: dict[_Name, list[Marker]] = defaultdict(list)
        try:
            found = markers(loaded.image)
        except ElfError:
            return {}
        for marker in found:
            if marker.provider == provider:
                function = loaded.image.symbol_at(marker.location)
                name = _Name(provider, loaded.name, function[0].name if function else "", probe_name(marker.name))
                sites[name].append(marker)
        return sites

    def _create(self, process: Process, loaded: LoadedObject, name: _Name, sites: list[Marker]) -> None:
        key = name._replace(provider=f"{name.provider}{process.pid}")
        if key in self._made:
            return
        arguments = {}
        for marker in sites:
            try:
                arguments[marker.location + loaded.bias] = parse_arguments(marker.arguments, loaded.image.isa)
            except MarkerArgumentError as error:
                raise PidError(
                    "D_PROC_USDT", f"marker {marker.provider}:{marker.name} in {loaded.name}: {error}"
                ) from None
        semaphores = {marker.semaphore + loaded.bias for marker in sites if marker.semaphore}
        probe = Probe(
            self._fasttrap.target(process),
            ProbeType.OFFSETS,
            min(arguments),
            0,
            tuple(arguments),
            read=self._reader(loaded, arguments),
            semaphores=tuple(sorted(semaphores)),
        )
        provider = self._providers.get(key.provider)
        if provider is None:
            provider = self._providers[key.provider] = PidProvider(key.provider, self._fasttrap)
            self._framework.register(provider)
        if not self._fasttrap.add(probe):
            raise PidError("D_PROC_CREATEFAIL", f"failed to create probe {name.name}: too many tracepoints")
        self._made.add(key)
        probe.id = self._framework.probe_create(provider, name.module, name.function, name.name, _AFRAMES, probe)

    def _reader(
        self, loaded: LoadedObject, arguments: dict[int, tuple[MarkerArgument, ...]]
    ) -> Callable[[Frame], tuple[int, ...]]:
        """Return what reads the arguments at whichever of the places was hit; what cannot be read is 0."""
        kernel = self._fasttrap.kernel

        def resolve(symbol: str) -> int:
            return loaded.image.symbol(symbol).value + loaded.bias

        def value(argument: MarkerArgument) -> int:
            try:
                return evaluate(argument, kernel.cpu.read_register, kernel.cpu.load, resolve)
            except (BadAddressError, ElfError):
                return 0

        def read(_frame: Frame) -> tuple[int, ...]:
            return tuple(map(value, arguments.get(kernel.cpu.pc, ())))

        return read
