"""The SDT of illumos.

It has nops in place of the compiler's calls, and a LOCK prefix makes one of them trap.

The kernel linker has replaced each call by five nops (emu/guest/kernel/krtld.py).  Enabling writes
0xf0 over the second: LOCK NOP is an invalid opcode, whose handler finds the site, fires with the
arguments that are in their registers, and has the nop emulated.  Python does that at the first hit
of a site, machine code at the next ones (`emu.probe.hit_cache`).  The prefix of a name determines
the provider.  Only x86 has it here, because illumos does not run on the other ISAs.

Source: illumos usr/src/uts/intel/dtrace/sdt.c, usr/src/uts/common/dtrace/sdt_subr.c.
"""

# ruff: noqa: ARG002  (the contract passes more than SDT needs)

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from emu.displaced.frame import Frame
from emu.elf.symbols import Symbol
from emu.engine.hits.hit_steps import Fire
from emu.isa import Isa
from emu.native.guest import LateArguments
from emu.probe.arguments import entry_arguments, late_arguments
from emu.probe.patcher import Patcher, Tracepoint
from emu.probe.trap import Hit, Served, TrapHandler
from providers.base import Framework, Provider

# The providers of illumos' table (sdt_providers) whose sites the teaching kernel has; the last one takes all other
# names.
PREFIXES: Final = {
    "__cpu_sysinfo_": "sysinfo",
    "__cpu_vminfo_": "vminfo",
    "__sched_": "sched",
    "__proc_": "proc",
    "__io_": "io",
    "__fsinfo_": "fsinfo",
    "__mib_": "mib",
    "__ip_": "ip",
    "__tcp_": "tcp",
    "__udp_": "udp",
    "": "sdt",
}
LOCK: Final = b"\xf0"
# DTRACE_INVOP_NOP.
NOP_CODE: Final = 4
AFRAMES: Final = 3
_UNKNOWN: Final = "<unknown>"


class IllumosSite(NamedTuple):
    """A probe's name from the kernel linker, and the address of the call's operand."""

    name: str
    offset: int


class IllumosKernel(Protocol):
    """The interface of a kernel guest for this provider."""

    isa: Isa
    patcher: Patcher

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol that contains an address, and the offset in it."""
        ...


def split(name: str) -> tuple[str, str]:
    """Return the provider and the probe's name of a site's name."""
    prefix = next(prefix for prefix in PREFIXES if name.startswith(prefix))
    return PREFIXES[prefix], name.removeprefix(prefix).replace("__", "-")


@dataclass(slots=True, eq=False)
class IllumosProbe:
    """A probe: its sites, which share module, function and name."""

    tracepoints: list[Tracepoint]


class IllumosProvider(Provider):
    """One of illumos' SDT providers."""

    def __init__(self, name: str, sdt: IllumosSdt) -> None:
        self.name = name
        self._sdt = sdt

    def enable(self, probe_id: int, arg: IllumosProbe) -> None:
        """Write the LOCK prefixes (sdt_enable)."""
        for tracepoint in arg.tracepoints:
            self._sdt.kernel.patcher.install(tracepoint)

    def disable(self, probe_id: int, arg: IllumosProbe) -> None:
        """Remove the LOCK prefixes (sdt_disable)."""
        for tracepoint in arg.tracepoints:
            self._sdt.kernel.patcher.remove(tracepoint)

    def argument_value(self, probe_id: int, arg: IllumosProbe, index: int) -> int | None:
        """Return an argument beyond the fifth: the sixth is in its register still (sdt_getarg)."""
        frame = self._sdt.traps.core.trapframe
        return frame.argument(index) if frame is not None else 0

    def late_arguments(self, probe_id: int, arg: IllumosProbe) -> LateArguments:
        """Return where machine code finds them."""
        return late_arguments(self._sdt.kernel.isa)

    def destroy(self, probe_id: int, arg: IllumosProbe) -> None:
        """Forget a probe."""
        for tracepoint in arg.tracepoints:
            self._sdt.kernel.patcher.forget(tracepoint)


class IllumosSdt:
    """The providers of one kernel, and the handler of their traps.  Creating it loads them."""

    def __init__(
        self, framework: Framework, kernel: IllumosKernel, traps: TrapHandler, sites: Iterable[IllumosSite]
    ) -> None:
        self.kernel = kernel
        self.traps = traps
        self.providers = {name: IllumosProvider(name, self) for name in PREFIXES.values()}
        self._framework = framework
        self._probes: dict[int, int] = {}
        """By address of the patched byte: the probe."""
        for provider in self.providers.values():
            framework.register(provider)
        for site in sites:
            self._create(site)
        traps.add(self._invop, self._describe)

    def _create(self, site: IllumosSite) -> None:
        """Make a probe, or add a site to the probe of these names (sdt_provide_module)."""
        name, probe = split(site.name)
        provider = self.providers[name]
        found = self.kernel.symbol_at(site.offset)
        function = found[0].name if found is not None else _UNKNOWN
        tracepoint = self.kernel.patcher.create(site.offset, LOCK, "sdt")
        probe_id = self._framework.probe_lookup(provider, "kernel", function, probe)
        if probe_id:
            record: IllumosProbe = self._framework.probe_arg(provider, probe_id)
            record.tracepoints.append(tracepoint)
        else:
            record = IllumosProbe([tracepoint])
            probe_id = self._framework.probe_create(provider, "kernel", function, probe, AFRAMES, record)
        self._probes[site.offset] = probe_id

    def _invop(self, address: int, frame: Frame, _extra: int) -> int:
        """Fire the probe of a site, whose nop is emulated (sdt_invop)."""
        probe_id = self._probes.get(address)
        if probe_id is None:
            return 0
        core = self.traps.core
        core.framed = True  # the site is in the middle of its function
        try:
            self._framework.probe(probe_id, *frame.arguments())
        finally:
            core.framed = False
        return NOP_CODE

    def _describe(self, address: int) -> Hit | Served | None:
        """Describe the handler's actions at an address."""
        probe_id = self._probes.get(address)
        if probe_id is None:
            return None
        runs = self._framework.native_runs(probe_id)
        if not runs:
            return Served.PYTHON
        return Hit((Fire(runs, entry_arguments(self.kernel.isa), framed=True),), NOP_CODE)
