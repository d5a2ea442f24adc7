"""USDT: the markers of programs as probes, `provider$target:::name`.

FreeBSD's programs register their probes by DOF (`providers.dof`); Linux programs have notes instead
(`emu.elf.stapsdt`), with the same content.  Provider names get the process's number, and `__` in a
probe's name becomes `-`, as with `dtrace -G`.

Source: FreeBSD fasttrap.c (fasttrap_meta_create_probe: names, tracepoints of one probe); libdtrace
dt_link.c (names).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from emu.displaced.frame import Frame
from emu.displaced.plans import Operation, Sum
from emu.elf.file import ElfError
from emu.elf.stapsdt import (
    Constant,
    InMemory,
    Marker,
    MarkerArgument,
    Unreadable,
    evaluate,
    markers,
    parse_arguments,
    resolver,
)
from emu.elf.symbols import told_apart
from emu.engine.hits import hit_steps
from emu.engine.hits.hit_steps import ARGUMENTS, Argument, Number, Register
from emu.guest.objects import LoadedObject
from emu.guest.processes import ProcessObserver
from emu.isa.elf_format import InRegister
from emu.support.words import BadAddressError
from providers.dof.layout import HEADER
from providers.dof.probes import HelperProbe, helper_probes
from providers.dof.sections import DofError, load_size
from providers.fasttrap.fasttrap import Fasttrap
from providers.fasttrap.pid import PidError
from providers.fasttrap.pid_provider import PidProvider
from providers.fasttrap.records import Located, Probe, ProbeType
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from emu.guest.processes import Area, Objects, Process
    from providers.base import Framework

_AFRAMES = 3


def _nothing(*_: object) -> int:
    """Read nothing: a constant needs no registers and no memory."""
    return 0


class _Helper(NamedTuple):
    """The description of an object's probes."""

    module: str
    probes: tuple[HelperProbe, ...]


class _Name(NamedTuple):
    provider: str
    module: str
    function: str
    name: str


def probe_name(marker: str) -> str:
    """Return the name of a marker's probe."""
    return marker.replace("__", "-")


class UsdtProbes(ProcessObserver):
    """Makes the probes of markers when a description names a provider with a process's number.

    The probes that a program describes in DOF are made when it registers them; `created` is called
    then.
    """

    def __init__(
        self, fasttrap: Fasttrap, framework: Framework, objects: Objects, created: Callable[[], None] = lambda: None
    ) -> None:
        self._fasttrap = fasttrap
        self._framework = framework
        self._objects = objects
        self._providers: dict[str, PidProvider] = {}
        self._made: dict[int, set[_Name]] = defaultdict(set)
        """By process number, the probes that were made of what it runs."""
        self._asked: dict[int, list[str]] = {}
        """By process number, the providers whose markers were asked for."""
        self._everywhere: list[Callable[[str], object]] = []
        """The tests of the providers whose markers were asked for in all processes."""
        self._created = created
        self._helpers: dict[Process, dict[int, _Helper]] = defaultdict(dict)
        fasttrap.kernel.watch(self)

    # -- registrations by programs

    def helper_added(self, process: Process, module: str, load_address: int, dof: int, generation: int) -> None:
        """Make the probes of a program's DOF (dtrace_helper_slurp); other data make none."""
        code = self._fasttrap.kernel.code(process)
        try:
            data = code.read(dof, load_size(code.read(dof, HEADER.size)))
            probes = tuple(helper_probes(data, load_address, dof))
        except (BadAddressError, DofError):
            return
        self._add_helper(process, generation, _Helper(module, probes))
        self._created()

    def helper_removed(self, process: Process, generation: int) -> None:
        """Forget an object's registration; its probes, like its code, stay until the process ends."""
        self._helpers[process].pop(generation, None)

    def forked(self, parent: Process, child: Process) -> None:
        """Give a child the probes of its parent, whose memory it has (dtrace_helpers_duplicate)."""
        for generation, helper in self._helpers[parent].items():
            self._add_helper(child, generation, _Helper(helper.module, helper.probes))
        own_space = child.space != parent.space  # else it soon runs another program
        objects = self._objects.of(child) if self._everywhere and own_space else ()
        made = [self._provide_matching(child, loaded) for loaded in objects]
        if any(made) or self._helpers[child]:
            self._created()

    def before_exec(self, process: Process) -> None:
        """Forget the registrations of the previous program."""
        self._helpers.pop(process, None)
        self._made.pop(process.pid, None)

    def executed(self, process: Process) -> None:
        """Make the requested probes in the program that a process now runs.

        As `PidProbes.executed`; a program that registers DOF makes its probes itself.
        """
        if self._fasttrap.fidelity is Fidelity.FREEBSD:
            self._asked.pop(process.pid, None)
        if process.pid not in self._asked and not self._everywhere:
            return
        for loaded in self._objects.of(process):
            self._provide_again(process, loaded)
        self._created()

    def mapped(self, process: Process, area: Area) -> None:
        """Make the requested probes in an object that has just been loaded."""
        loaded = self._objects.loaded(process, area) if process.pid in self._asked or self._everywhere else None
        if loaded is not None:
            self._provide_again(process, loaded)
            self._created()

    def _provide_again(self, process: Process, loaded: LoadedObject) -> None:
        for provider in self._asked.get(process.pid, ()):
            self._provide_quietly(process, loaded, provider)
        self._provide_matching(process, loaded)

    def _provide_matching(self, process: Process, loaded: LoadedObject) -> bool:
        """Make the probes that were asked for in all processes; return whether there are some."""
        wanted = [
            provider
            for provider in self._providers_of(loaded)
            if any(matches(f"{provider}{process.pid}") for matches in self._everywhere)
        ]
        for provider in wanted:
            self._provide_quietly(process, loaded, provider)
        return bool(wanted)

    def _provide_quietly(self, process: Process, loaded: LoadedObject, provider: str) -> None:
        for name, sites in self._sites(loaded, provider).items():
            with suppress(PidError):  # it was valid for the objects for which it was requested
                self._create(process, loaded, name, sites)

    def exited(self, process: Process) -> None:
        """Forget the registrations of a process."""
        self._helpers.pop(process, None)
        self._made.pop(process.pid, None)

    def _add_helper(self, process: Process, generation: int, helper: _Helper) -> None:
        self._helpers[process][generation] = helper
        for one in helper.probes:
            key = _Name(f"{one.provider}{process.pid}", helper.module, one.function, one.name)
            if key in self._made[process.pid]:
                continue
            types = tuple(
                (one.types[index], text, index) for text, index in zip(one.translated, one.mapping, strict=True)
            )
            probe = Probe(
                self._fasttrap.target(process),
                ProbeType.OFFSETS,
                one.address,
                0,
                one.sites + one.questions,
                questions=frozenset(one.questions),
                types=types,
            )
            if not self._fasttrap.add(probe):
                return
            self._made[process.pid].add(key)
            provider = self._provider(key.provider)
            probe.id = self._framework.probe_create(provider, key.module, key.function, key.name, _AFRAMES, probe)

    def _provider(self, name: str) -> PidProvider:
        provider = self._providers.get(name)
        if provider is None:
            provider = self._providers[name] = PidProvider(name, self._fasttrap)
            self._framework.register(provider)
        return provider

    # -- markers in notes

    def provide(self, provider: str, pid: int) -> None:
        """Make the probes of a provider's markers.

        Raises `PidError` if there is no such process.
        """
        process = self._fasttrap.kernel.process(pid)
        if process is None or not process.alive:
            raise PidError("D_PROC_GRAB", f"failed to grab process {pid}: there is no such process in the guest")
        asked = self._asked.setdefault(pid, [])
        if provider not in asked:
            asked.append(provider)
        for loaded in self._objects.of(process):
            for name, sites in self._sites(loaded, provider).items():
                self._create(process, loaded, name, sites)

    def provide_everywhere(self, matches: Callable[[str], object]) -> None:
        """Make the probes of markers in all processes, now and later.

        `matches` tests the name of a provider, with the process's number.  A program with DOF
        registers its probes whether they are asked for or not; notes are looked at when they are.
        """
        self._everywhere.append(matches)
        for process in self._fasttrap.kernel.alive():
            for loaded in self._objects.of(process):
                self._provide_matching(process, loaded)

    @staticmethod
    def _providers_of(loaded: LoadedObject) -> set[str]:
        try:
            return {marker.provider for marker in markers(loaded.image)}
        except ElfError:
            return set()

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
        if key in self._made[process.pid]:
            return
        arguments = {}
        for marker in sites:
            arguments[marker.location + loaded.bias] = parse_arguments(marker.arguments, loaded.image.isa)
        self._report_unreadable(loaded, name, arguments)
        semaphores = {marker.semaphore + loaded.bias for marker in sites if marker.semaphore}
        probe = Probe(
            self._fasttrap.target(process),
            ProbeType.OFFSETS,
            min(arguments),
            0,
            tuple(arguments),
            read=self._reader(loaded, arguments),
            locate=partial(self._locate, arguments),
            semaphores=tuple(sorted(semaphores)),
        )
        provider = self._provider(key.provider)
        if not self._fasttrap.add(probe):
            raise PidError("D_PROC_CREATEFAIL", f"failed to create probe {name.name}: too many tracepoints")
        self._made[process.pid].add(key)
        probe.id = self._framework.probe_create(provider, name.module, name.function, name.name, _AFRAMES, probe)

    def _report_unreadable(
        self, loaded: LoadedObject, name: _Name, arguments: dict[int, tuple[MarkerArgument, ...]]
    ) -> None:
        """Report arguments that cannot be read; their values are 0."""
        for argument in dict.fromkeys(one for each in arguments.values() for one in each):
            where = f"marker {name.provider}:{name.name} in {loaded.name}: '{argument.text}'"
            why = argument.unreadable(loaded.image)
            if why:
                self._fasttrap.report(f"{where} reads as 0: {why}")
                continue
            symbol = argument.operand.symbol if isinstance(argument.operand, InMemory) else ""
            asking = [address - loaded.bias for address, known in arguments.items() if symbol and argument in known]
            found = max((loaded.image.meant(symbol, address) for address in asking), key=len, default=())
            if len(found) > 1:
                each = ", ".join(told_apart(symbol, found))
                self._fasttrap.report(f"{where} reads the first of {each}: the code's source file is not known")

    def _locate(self, arguments: dict[int, tuple[MarkerArgument, ...]], site: int) -> Located | None:
        """Return the locations of a site's arguments; None: Python must read one of them."""
        operations: list[Operation] = []
        known = arguments.get(site, ())
        passed = self._located(known[:ARGUMENTS], operations)
        late = self._located(known[ARGUMENTS : 2 * ARGUMENTS], operations)
        return None if passed is None else Located(tuple(operations), passed, late)

    def _located(self, arguments: Iterable[MarkerArgument], operations: list[Operation]) -> tuple[Argument, ...] | None:
        """Return the locations of arguments; None: Python must read one of them.

        Operations that compute addresses are appended to `operations`.
        """
        slots = self._fasttrap.kernel.isa.registers.slots
        found: list[Argument] = []
        for one in arguments:
            match one.operand:
                case Constant():
                    found.append(Number(evaluate(one, _nothing, _nothing, _nothing)))
                case Unreadable():
                    found.append(Number(0))
                case InRegister(register, 0) if register in slots and one.size <= self._fasttrap.kernel.isa.word:
                    found.append(Register(register, one.size, one.signed))
                case InMemory(base, displacement, scaled, scale, "", "", extended="") if {base, scaled} - {
                    ""
                } <= slots.keys():
                    address = f"%address {len(operations)}"
                    operations.append(Sum(address, base, scaled, scale.bit_length() - 1, displacement))
                    found.append(hit_steps.InMemory(address, 0, one.size, one.signed))
                case _:
                    return None
        return tuple(found)

    def _reader(
        self, loaded: LoadedObject, arguments: dict[int, tuple[MarkerArgument, ...]]
    ) -> Callable[[Frame], tuple[int, ...]]:
        """Return the function that reads the arguments at any of the places.

        An argument that cannot be read is 0.
        """
        kernel = self._fasttrap.kernel
        mask = kernel.isa.address_mask
        resolve = resolver(loaded.image, loaded.bias, lambda: kernel.cpu.pc)

        def value(argument: MarkerArgument) -> int:
            try:
                return evaluate(argument, kernel.cpu.read_register, kernel.cpu.load, resolve, mask)
            except (BadAddressError, ElfError):
                return 0

        def read(_frame: Frame) -> tuple[int, ...]:
            return tuple(map(value, arguments.get(kernel.cpu.pc, ())))

        return read
