"""Probes of the pid provider, made from descriptions such as `pid$target:libc:malloc:entry`.

Every instruction could have one, so a probe is made only when a description names it. The meaning
of a description is that of libdtrace; fasttrap then manages the probes.

Source: FreeBSD libdtrace common/dt_pid.c (which probes there are), sys fasttrap.c
(fasttrap_add_probe).
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from emu.elf.image import no_instruction
from emu.elf.stripped import selected
from emu.elf.symbols import Symbol, SymbolType, told_apart
from emu.guest.objects import LoadedObject
from emu.guest.processes import Objects, Process, ProcessObserver
from emu.support.words import BadAddressError
from providers.base import Framework
from providers.fasttrap.fasttrap import Fasttrap
from providers.fasttrap.pid_provider import PidProvider
from providers.fasttrap.points import EVERYWHERE
from providers.fasttrap.port import Port
from providers.fasttrap.records import Probe, ProbeType, Target
from providers.fidelity import Fidelity

if TYPE_CHECKING:
    from emu.guest.processes import Area

ENTRY: Final = "entry"
RETURN: Final = "return"
# The module name of the program itself.
EXECUTABLE: Final = "a.out"
# The function name that says that probe names are absolute addresses.
ABSOLUTE: Final = "-"
_GLOB: Final = frozenset("*?[\\")
# Functions that globs do not match.
_SKIPPED: Final = frozenset({"_init", "_fini"})
# Functions whose returns are not searched again: the same program starts many times in one process.
_REMEMBERED: Final = 1 << 13
_AFRAMES: Final = {ProbeType.ENTRY: 3, ProbeType.RETURN: 4, ProbeType.OFFSETS: 3}


class PidError(Exception):
    """A description whose probes cannot be made; `tag` is libdtrace's name of the error."""

    def __init__(self, tag: str, message: str) -> None:
        super().__init__(message)
        self.tag = tag


class Wanted(NamedTuple):
    """A probe description of one process."""

    module: str
    function: str
    name: str


class _Function(NamedTuple):
    """A function of a process."""

    provider: PidProvider
    target: Target
    module: str
    name: str
    address: int
    size: int
    made: set[str]
    """The names of its probes."""


def _is_glob(text: str) -> bool:
    return not _GLOB.isdisjoint(text)


@lru_cache(_REMEMBERED)
def _returns(port: Port, code: bytes, address: int, fidelity: Fidelity) -> tuple[int, ...]:
    """Return the offsets of a function's return sites, in order."""
    return tuple(sorted(port.returns(code, address, fidelity)))


def _matcher(pattern: str) -> Callable[[str], bool]:
    """Return the test of one field; an empty one matches anything."""
    if not pattern:
        return lambda _text: True
    if not _is_glob(pattern):
        return pattern.__eq__
    return lambda text: fnmatch.fnmatchcase(text, pattern)


class PidProbes(ProcessObserver):
    """Makes the probes of processes on demand, and again when an object is loaded.

    `created` is called when probes were made while a process runs, because they may match enabled
    descriptions.
    """

    def __init__(self, fasttrap: Fasttrap, framework: Framework, objects: Objects, created: Callable[[], None]) -> None:
        self._fasttrap = fasttrap
        self._framework = framework
        self._objects = objects
        self._created = created
        self._providers: dict[int, PidProvider] = {}
        self._wanted: dict[int, list[Wanted]] = {}
        self._made: dict[tuple[PidProvider, int, str, str], set[str]] = {}
        """The names of the probes there are, by provider, module, function, and the function's address.

        On FreeBSD the address does not count: a second function of that name has no probes.
        """
        self._told: set[tuple[str, str]] = set()
        """The modules and names of which was said that there are several functions."""
        fasttrap.kernel.watch(self)

    def provide(self, pid: int, wanted: Wanted) -> str:
        """Make the probes of a description, in the objects that the process has loaded.

        Returns the module's name in the probes: `a.out` and `libc` are aliases (dt_pid_fix_mod).
        Raises `PidError`.
        """
        process = self._fasttrap.kernel.process(pid)
        if process is None or not process.alive:
            raise PidError("D_PROC_GRAB", f"failed to grab process {pid}: there is no such process in the guest")
        self._wanted.setdefault(pid, []).append(wanted)
        provider = self._provider(pid)
        if wanted.function == ABSOLUTE:
            return self._absolute(provider, process, wanted)
        found = False
        modules = [one for one in self._objects.of(process) if self._is_module(process, one, wanted.module)]
        for loaded in modules:
            found |= self._provide_object(provider, process, loaded, wanted)
        exact = wanted.module and wanted.function and not _is_glob(wanted.module) and not _is_glob(wanted.function)
        if exact and modules and not found:
            raise PidError("D_PROC_FUNC", f"failed to lookup '{wanted.function}' in module '{wanted.module}'")
        if not found and modules and not any(one.functions() for one in modules):
            names = ", ".join(one.name for one in modules)
            raise PidError(
                "D_PDESC_ZERO",
                f"{names} has no symbols and no .eh_frame (stripped), so it has no probes with function names; "
                f"name addresses: pid$target:a.out:-:ADDRESS",
            )
        return modules[0].name if len(modules) == 1 and not _is_glob(wanted.module) and wanted.module else wanted.module

    def _provider(self, pid: int) -> PidProvider:
        if pid not in self._providers:
            provider = self._providers[pid] = PidProvider(f"pid{pid}", self._fasttrap)
            self._framework.register(provider)
        return self._providers[pid]

    @staticmethod
    def _is_module(process: Process, loaded: LoadedObject, pattern: str) -> bool:
        """Return whether a module pattern means an object: its file's name, or its DT_SONAME.

        The part of a name after `.so` may be omitted.  A real linker knows a library by the name by
        which it was requested; here the object is the file that was mapped.
        """
        if pattern == EXECUTABLE:
            return loaded.file == process.executable
        test = _matcher(pattern)
        names = {loaded.name, loaded.image.soname or loaded.name}
        return any(test(name) or test(re.sub(r"\.so(\..*)?$", "", name)) for name in names)

    def _provide_object(self, provider: PidProvider, process: Process, loaded: LoadedObject, wanted: Wanted) -> bool:
        """Make the probes in one object; return whether any function was meant."""
        symbols: Sequence[Symbol]
        if wanted.function and not _is_glob(wanted.function):
            found = self._all_or_first(loaded, wanted.function, loaded.named(wanted.function))
            symbols = [self._code_of(process, loaded, one._replace(name=wanted.function)) for one in found]
        else:
            found = selected(loaded.functions(), wanted.function)
            symbols = [one for one in found if one.name not in _SKIPPED]
        for symbol in symbols:
            self._provide_function(provider, process, loaded, symbol, wanted)
        if self._fasttrap.fidelity is not Fidelity.FREEBSD and wanted.name != ENTRY:
            self._report_undecoded(process, loaded, symbols)
        return bool(symbols)

    def _report_undecoded(self, process: Process, loaded: LoadedObject, symbols: Sequence[Symbol]) -> None:
        """Say which functions lack probes, because their bytes are not all instructions."""
        read = self._fasttrap.target(process).patcher.original
        codes = ((one.name, self._code(read, one.value + loaded.bias, one.size)) for one in symbols)
        found = [(name, at) for name, code in codes if (at := self._undecoded(code)) is not None]
        if not found:
            return
        name, at = found[0]
        others = f" and {len(found) - 1:,} other functions" if len(found) > 1 else ""
        self._fasttrap.report(
            f"{loaded.name}`{name}+{at:#x}: no instruction begins there (data?), so {name}{others} "
            f"{'have' if others else 'has'} no offset probes, and return probes only where a frame ends"
        )

    def _undecoded(self, code: bytes) -> int | None:
        """Return the offset of the first bytes of a function that do not decode; None: all do."""
        at = self._fasttrap.port.decoded(code, self._fasttrap.fidelity)
        return at if at < len(code) else None

    def _all_or_first(self, loaded: LoadedObject, name: str, found: Sequence[Symbol]) -> Sequence[Symbol]:
        """Return all functions of a name, and say that there are several.

        FreeBSD's libproc gives the first one only.
        """
        if len(found) < 2:
            return found
        each = ", ".join(told_apart(name, found))
        first = self._fasttrap.fidelity is Fidelity.FREEBSD
        probed = "the first is probed, as on FreeBSD" if first else "all are probed; dtrace(1) takes the first"
        if (loaded.name, name) not in self._told:
            self._told.add((loaded.name, name))
            self._fasttrap.report(f"{loaded.name} has {len(found)} functions '{name}': {each}; {probed}")
        return found[:1] if first else found

    def _code_of(self, process: Process, loaded: LoadedObject, symbol: Symbol) -> Symbol:
        """Return the code of a function's name.

        For an indirect function this is the code that its resolver has chosen.  libdtrace, which
        does not know such functions, would probe the resolver.
        """
        if symbol.type is not SymbolType.GNU_IFUNC or self._fasttrap.fidelity is Fidelity.FREEBSD:
            return symbol
        return self._objects.chosen(process, loaded, symbol) or symbol

    def _provide_function(
        self, provider: PidProvider, process: Process, loaded: LoadedObject, symbol: Symbol, wanted: Wanted
    ) -> None:
        """Make the probes of one function (dt_pid_per_sym)."""
        test, glob = _matcher(wanted.name), not wanted.name or _is_glob(wanted.name)
        target, module, port = self._fasttrap.target(process), loaded.name, self._fasttrap.port
        address = symbol.value + loaded.bias
        place = loaded.bias if self._fasttrap.fidelity is Fidelity.FREEBSD else address
        made = self._made.setdefault((provider, place, module, symbol.name), set())
        function = _Function(provider, target, module, symbol.name, address, symbol.size, made)
        named = False
        if test(RETURN):
            named = True
            code = self._code(target.patcher.original, address, symbol.size)
            offsets = _returns(port, code, address, self._fasttrap.fidelity)
            sites = tuple(address + offset for offset in offsets)
            if sites:
                self._create(function, RETURN, ProbeType.RETURN, sites)
        if test(ENTRY):
            named = True
            self._create(function, ENTRY, ProbeType.ENTRY, (address,))
        if not glob and named:
            return
        code = self._code(target.patcher.original, address, symbol.size)
        if not glob:
            self._offset(function, self._checked_offset(symbol, code, wanted.name))
        elif self._undecoded(code) is None:
            for offset in port.boundaries(code):
                if test(f"{offset:x}"):
                    self._offset(function, offset)

    def _checked_offset(self, symbol: Symbol, code: bytes, name: str) -> int:
        if not re.fullmatch(r"[0-9a-fA-F]+", name):
            raise PidError("D_PROC_NAME", f"'{name}' is an invalid probe name")
        offset = int(name, 16)
        if offset >= symbol.size:
            raise PidError("D_PROC_OFF", f"offset 0x{offset:x} outside of function '{symbol.name}'")
        if self._undecoded(code) is not None:
            raise PidError("D_PROC_CREATEFAIL", f"'{symbol.name}' contains a jump table: no offset probes there")
        if offset not in self._fasttrap.port.boundaries(code):
            raise PidError("D_PROC_ALIGN", f"offset 0x{offset:x} is not aligned on an instruction")
        return offset

    def _offset(self, function: _Function, offset: int) -> None:
        self._create(function, f"{offset:x}", ProbeType.OFFSETS, (function.address + offset,))

    @staticmethod
    def _code(read: Callable[[int, int], bytes], address: int, size: int) -> bytes:
        try:
            return read(address, size)
        except BadAddressError:
            return b""

    def _create(self, function: _Function, name: str, kind: ProbeType, addresses: tuple[int, ...]) -> None:
        if name in function.made:
            return
        function.made.add(name)
        probe = Probe(function.target, kind, function.address, function.size, addresses)
        self._add(function.provider, function.module, function.name, name, probe)

    def _add(self, provider: PidProvider, module: str, function: str, name: str, probe: Probe) -> None:
        if not self._fasttrap.add(probe):
            raise PidError(
                "D_PROC_CREATEFAIL", f"failed to create probe {module}:{function}:{name}: too many tracepoints"
            )
        probe.id = self._framework.probe_create(provider, module, function, name, _AFRAMES[probe.type], probe)

    def _absolute(self, provider: PidProvider, process: Process, wanted: Wanted) -> str:
        """Make the probe at an absolute address, and return its module."""
        if wanted.module not in {"", EXECUTABLE}:
            raise PidError("D_PROC_LIB", f"only the a.out module is valid with the '{ABSOLUTE}' function")
        if not wanted.name or _is_glob(wanted.name):
            raise PidError("D_PROC_NAME", f"only individual addresses may be specified with the '{ABSOLUTE}' function")
        if not re.fullmatch(r"[0-9a-fA-F]+", wanted.name):
            raise PidError("D_PROC_NAME", f"'{wanted.name}' is an invalid probe name")
        address = int(wanted.name, 16)
        self._check_address(process, address)
        module = process.path.rsplit("/", 1)[-1]
        made = self._made.setdefault((provider, 0, module, ABSOLUTE), set())
        if wanted.name not in made:
            made.add(wanted.name)
            probe = Probe(self._fasttrap.target(process), ProbeType.OFFSETS, 0, EVERYWHERE, (address,))
            self._add(provider, module, ABSOLUTE, wanted.name, probe)
        return module

    def _check_address(self, process: Process, address: int) -> None:
        """Refuse an address where no instruction begins; FreeBSD puts its breakpoint there."""
        loaded = self._objects.at(process, address)
        if self._fasttrap.fidelity is Fidelity.FREEBSD or loaded is None:
            return
        why = no_instruction(loaded.image, address - loaded.bias)
        if why is not None:
            raise PidError("D_PROC_ALIGN", f"no probe at 0x{address:x} in {loaded.name}: {why}")

    # -- later events

    def mapped(self, process: Process, area: Area) -> None:
        """Make the requested probes in an object that has just been loaded (dlopen)."""
        loaded = self._objects.loaded(process, area)
        if loaded is not None and self._wanted.get(process.pid):
            self._provide_again(process, loaded)
            self._created()

    def executed(self, process: Process) -> None:
        """Make the requested probes in the program that a process now runs.

        illumos' libdtrace does this too (dt_proc_control, dt_proc_attach).  FreeBSD's does not
        notice the exec: its libproc does not report which system call a process leaves
        (lib/libproc/proc_util.c, proc_getlwpstatus), and the breakpoints that report new objects
        are gone.
        """
        asked = self._wanted.get(process.pid)
        if not asked:
            return
        program = process.path.rsplit("/", 1)[-1]
        if self._fasttrap.fidelity is Fidelity.FREEBSD:
            del self._wanted[process.pid]
            self._fasttrap.report(f"pid {process.pid} runs {program} now: its probes are gone, as on FreeBSD")
            return
        if any(wanted.function == ABSOLUTE for wanted in asked):
            self._fasttrap.report(f"pid {process.pid} runs {program} now: its address probes are not created again")
        provider = self._provider(process.pid)
        self._made = {made: names for made, names in self._made.items() if made[0] is not provider}
        for loaded in self._objects.of(process):
            self._provide_again(process, loaded)
        self._created()

    def _provide_again(self, process: Process, loaded: LoadedObject) -> None:
        provider = self._provider(process.pid)
        for wanted in self._wanted[process.pid]:
            if wanted.function != ABSOLUTE and self._is_module(process, loaded, wanted.module):
                try:
                    self._provide_object(provider, process, loaded, wanted)
                except PidError:
                    continue  # it was valid for the objects for which it was written


def parse_provider(name: str) -> tuple[str, int] | None:
    """Split a provider's name into letters and a process number.

    None: it has no number at its end.
    """
    found = re.fullmatch(r"(.*?[^0-9])([0-9]+)", name)
    return (found[1], int(found[2])) if found else None
