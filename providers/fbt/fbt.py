"""The FBT provider: from the functions of a module to probes, and from an enabling to breakpoints.

The life of a probe, each step a method below:

    provide_module    the ISA's scan finds the sites of each function; each site becomes a `Record`
                      with a tracepoint; the entry becomes one probe, and all the returns together
                      become another
    enable            the tracepoints of the probe are installed: the byte changes
    (a hit)           the breakpoint traps, and `emu.probe.trap` calls the ISA's handler, which
    finds the record and fires the probe; its answer identifies the displaced instruction, which
    `emu.displaced.decision` emulates disable           the tracepoints are removed: the original
    byte is back destroy           the module is unloaded, and its records are removed

Source: FreeBSD sys/cddl/dev/fbt/fbt.c.
"""

# ruff: noqa: ARG002  (the contract passes more than FBT needs)

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

from emu.displaced.decision import Rule
from emu.elf.symbols import Symbol
from emu.engine.hits.hit_steps import Fire, Number
from emu.guest.modules import Module
from emu.isa.base import Isa
from emu.native.guest import LateArguments
from emu.probe.arguments import entry_arguments, late_arguments, results
from emu.probe.patcher import Patcher
from emu.probe.trap import Hit, Served, TrapHandler
from emu.support.words import BadAddressError
from providers.base import ArgumentDescription, Framework, Provider
from providers.fbt.exclusions import EXCLUSIONS, excluded, module_name, module_refusal
from providers.fbt.kept_sites import Found, kept_sites
from providers.fbt.port import PORTS, Exclusion, Function, Port, Refusal, ScanResult, Site
from providers.fbt.records import Record, RecordTable
from providers.fidelity import Fidelity

# Modules that are not scanned again: the same kernel boots many times in one process.
_REMEMBERED: Final = 128
# Bytes of code of a module that is remembered whole.
_LARGEST_TEXT: Final = 1 << 22

WALK_ENDED = Rule(
    "walk ended",
    "an excluded function earlier in the symbol table ended the walk; this one was not examined",
    "FreeBSD sys/kern/link_elf.c, link_elf_each_function_nameval",
)
NO_CODE = Rule("no code", "no segment is loaded at the symbol's address", "this simulator; a kernel would panic")


class Signature(NamedTuple):
    """The types of a function, in the syntax of C."""

    result: str
    parameters: tuple[str, ...]


class SignatureSource(Protocol):
    """A source of the types of kernel functions (CTF on FreeBSD)."""

    def signature(self, module: str, function: str) -> Signature | None:
        """Return the types of a function, None if they are not known."""
        ...


def sound_sites(port: Port, function: Function, result: ScanResult) -> tuple[Site, ...]:
    """Return the sites of a scanned function where a breakpoint does not change its behaviour."""
    if not port.unsound:
        return result.sites
    broken = {remark.address for remark in port.remarks(function, result) if remark.rule in port.unsound}
    return tuple(site for site in result.sites if site.address not in broken)


def walk(
    port: Port,
    functions: Iterable[Symbol],
    read: Callable[[int, int], bytes],
    wanted: Callable[[str], bool] = lambda _name: True,
    fidelity: Fidelity = Fidelity.EXACT,
    exclusions: Iterable[Exclusion] | None = None,
) -> Iterator[tuple[Symbol, Function | None, ScanResult]]:
    """Scan functions in order, as FBT does.  `exclusions`: None are those of FreeBSD.

    Yield each with its bytes, if they were scanned, and the result of the scan.

    Functions whose names are not `wanted` are not yielded, but still affect the walk.
    """
    names = (*EXCLUSIONS, *port.exclusions) if exclusions is None else tuple(exclusions)
    ended = False
    for symbol in functions:
        exclusion = excluded(symbol.name, names)
        if ended or exclusion is not None:
            rule = WALK_ENDED if ended or exclusion is None else exclusion.rule
            ended = ended or (exclusion is not None and exclusion.ends_walk)
            if wanted(symbol.name):
                yield symbol, None, ScanResult((), Refusal(symbol.value, rule))
            continue
        if not wanted(symbol.name):
            continue
        try:
            code = read(symbol.value, symbol.size + port.lookahead)
        except BadAddressError:
            yield symbol, None, ScanResult((), Refusal(symbol.value, NO_CODE))
            continue
        if len(code) < symbol.size:  # a damaged symbol: the file ends before the function does
            yield symbol, None, ScanResult((), Refusal(symbol.value, NO_CODE))
            continue
        function = Function(symbol.name, symbol.value, symbol.size, code, fidelity)
        yield symbol, function, port.scan(function)


class Probed(NamedTuple):
    """A function that gets probes."""

    number: int
    """Its position in the walk."""
    symbol: Symbol
    code: bytes
    """Its bytes, and some that follow."""
    sites: Sequence[Site]


def _probed(
    port: Port, functions: Iterable[Symbol], read: Callable[[int, int], bytes], fidelity: Fidelity
) -> tuple[Probed, ...]:
    """Return the functions of a module that get probes."""
    found = []
    for index, (symbol, function, result) in enumerate(walk(port, functions, read, fidelity=fidelity)):
        if function is None or not result.sites:
            continue
        sites = result.sites if fidelity is Fidelity.FREEBSD else sound_sites(port, function, result)
        found.append(Probed(index, symbol, function.code, sites))
    return tuple(found)


@lru_cache(_REMEMBERED)
def _remembered(
    port: Port, functions: tuple[Symbol, ...], start: int, text: bytes, fidelity: Fidelity, kept: str | None
) -> tuple[Probed, ...]:
    """Return the same for functions whose code is in one piece, which begins at `start`.

    `kept` is the name of the port in `PORTS`, if the sites are kept on disk.
    """

    def read(address: int, size: int) -> bytes:
        return text[address - start : address - start + size]

    def find() -> list[Found]:
        return [(one.number, one.sites) for one in _probed(port, functions, read, fidelity)]

    found = find() if kept is None else kept_sites(kept, functions, text, fidelity, find)
    probed = ((number, functions[number], sites) for number, sites in found)
    return tuple(
        Probed(number, symbol, read(symbol.value, symbol.size + port.lookahead), sites)
        for number, symbol, sites in probed
    )


def _text(functions: Sequence[Symbol], read: Callable[[int, int], bytes], lookahead: int) -> tuple[int, bytes] | None:
    """Return the code of functions and its address; None: it is not in one piece of memory."""
    if not functions:
        return None
    start = min(symbol.value for symbol in functions)
    size = max(symbol.value + symbol.size for symbol in functions) + lookahead - start
    if size > _LARGEST_TEXT:
        return None
    try:
        code = read(start, size)
    except BadAddressError:
        return None
    return (start, code) if len(code) == size else None


class FBT(Provider):
    """fbt:module:function:entry and :return."""

    name = "fbt"

    def __init__(
        self,
        framework: Framework,
        patcher: Patcher,
        traps: TrapHandler,
        isa: Isa,
        signatures: SignatureSource | None = None,
        fidelity: Fidelity = Fidelity.EXACT,
        port: Port | None = None,
        *,
        keep: bool = False,
    ) -> None:
        """Register with the framework and with the chain of breakpoint handlers.

        `port` replaces the ISA's port in `PORTS`; otherwise, `keep` keeps the sites on disk.
        """
        self.table = RecordTable()
        self._framework = framework
        self._patcher = patcher
        self._traps = traps
        self._port = port or PORTS[isa.name]
        self._kept = isa.name if keep and port is None else None
        self._signatures = signatures
        self._fidelity = fidelity
        self._isa = isa
        self._handler = self._port.handler(self.table, traps.core, framework.probe)
        framework.register(self)
        traps.add(self._handler, self._describe)

    def unload(self) -> None:
        """Leave the chain and the framework.  Raises ValueError while a probe is enabled."""
        self._framework.unregister(self)
        self.unregistered()

    def unregistered(self) -> None:
        """Leave the chain."""
        self._traps.remove(self._handler)

    def provide_module(self, module: Module) -> None:
        """Create the probes of a module, once (fbt_provide_module)."""
        if module_refusal(module) is not None or module.fbt_entries:
            return
        functions = tuple(module.functions())
        text = _text(functions, module.read, self._port.lookahead)
        if text is None:
            found = _probed(self._port, functions, module.read, self._fidelity)
        else:
            found = _remembered(self._port, functions, *text, self._fidelity, self._kept)
        for probed in found:
            self._provide_function(module, probed)

    def _provide_function(self, module: Module, probed: Probed) -> None:
        """Create the entry probe and one return probe (fbt_provide_module_function)."""
        last: Record | None = None
        name, symbol = module_name(module.name), probed.symbol
        for site in probed.sites:
            record = self._record(module, probed, site)
            if last is not None and last.roffset:
                record.probe_id = last.probe_id
                last.probe_next = record
            else:
                record.probe_id = self._framework.probe_create(
                    self, name, symbol.name, site.probe, self._port.aframes, record
                )
            self.table.insert(record, share=self._port.shares_tracepoints)
            module.fbt_entries += 1
            last = record

    def _record(self, module: Module, probed: Probed, site: Site) -> Record:
        known = self.table.find(site.address)
        if known is not None:
            tracepoint = known.tracepoint
        else:
            offset = site.address - probed.symbol.value
            original = probed.code[offset : offset + len(site.patch)]
            tracepoint = self._patcher.create(site.address, site.patch, self.name, original)
        return Record(
            address=site.address,
            tracepoint=tracepoint,
            saved=site.saved,
            rval=site.rval,
            roffset=site.roffset,
            function=probed.symbol.name,
            module=module,
            load_count=module.load_count,
            symbol_index=probed.number,
        )

    def enable(self, probe_id: int, arg: Record) -> None:
        """Install the probe's tracepoints, unless its module was loaded again since (fbt_enable)."""
        arg.module.enabled += 1
        if arg.module.load_count != arg.load_count:
            return
        for record in arg.of_probe():
            self._patcher.install(record.tracepoint)
            record.enabled += 1

    def late_arguments(self, probe_id: int, arg: Record) -> LateArguments:
        """Return where the interrupted context has argument 5 and up."""
        return late_arguments(self._isa)

    def disable(self, probe_id: int, arg: Record) -> None:
        """Remove the probe's tracepoints that no other probe needs (fbt_disable)."""
        arg.module.enabled -= 1
        if arg.module.load_count != arg.load_count:
            return
        for record in arg.of_probe():
            record.enabled -= 1
            first = self.table.find(record.address)
            if first is None or not any(sibling.enabled for sibling in first.of_tracepoint()):
                self._patcher.remove(record.tracepoint)

    def suspend(self, probe_id: int, arg: Record) -> None:
        """Remove the probe's patches, even those that other probes need (fbt_suspend)."""
        if arg.module.load_count == arg.load_count:
            for record in arg.of_probe():
                self._patcher.remove(record.tracepoint)

    def resume(self, probe_id: int, arg: Record) -> None:
        """Write the probe's patches (fbt_resume)."""
        if arg.module.load_count == arg.load_count:
            for record in arg.of_probe():
                self._patcher.install(record.tracepoint)

    def _describe(self, address: int) -> Hit | Served | None:
        """Describe the handler's actions at an address."""
        first = self.table.find(address)
        if first is None:
            return None
        fires = []
        for record in first.of_tracepoint() if self._port.shares_tracepoints else (first,):
            runs = self._framework.native_runs(record.probe_id)
            if not runs or record.module.load_count != record.load_count:
                return Served.PYTHON
            if record.enabled:
                fires.append(self._fire(record, runs))
        return Hit(tuple(fires), first.rval if self._isa.stub.by_code else first.saved)

    def _fire(self, record: Record, runs: int) -> Fire:
        port = self._port
        if not record.roffset:
            return Fire(runs, entry_arguments(self._isa), port.entry_caller)
        found = results(self._isa) if port.both_results else results(self._isa)[:1]
        return Fire(runs, (Number(record.roffset), *found), port.return_caller)

    def double_trap(self) -> None:
        """Remove every patch: a fault has occurred in a fault handler (fbt_doubletrap)."""
        for record in self.table:
            self._patcher.remove(record.tracepoint)

    def argument_description(self, probe_id: int, arg: Record, index: int) -> ArgumentDescription | None:
        """Return an argument's type (fbt_getargdesc).

        At a return, args[0] is the offset and args[1] the result.
        """
        if arg.roffset and index == 0:
            return ArgumentDescription(index, "int")
        signature = self._signatures.signature(module_name(arg.module.name), arg.function) if self._signatures else None
        if signature is None:
            return None
        types = ("int", signature.result) if arg.roffset else signature.parameters
        return ArgumentDescription(index, types[index]) if index < len(types) else None

    def destroy(self, probe_id: int, arg: Record) -> None:
        """Forget a probe and its records (fbt_destroy)."""
        for record in list(arg.of_probe()):
            record.module.fbt_entries -= 1
            self.table.remove(record)
            if self.table.find(record.address) is None:
                self._patcher.forget(record.tracepoint)
