"""SDT as illumos has it.

Nops where the compiler put calls, and a LOCK prefix that makes one of them trap.

The kernel linker has made each call five nops (emu/guest/kernel/krtld.py).  Enabling writes 0xf0
over the second: LOCK NOP is an invalid opcode, whose handler finds the site, fires with the
arguments that are in their registers anyway, and has the nop emulated.  What a name begins with
tells the provider.  x86 alone has it here: illumos has no other ISA of ours.

Source: illumos usr/src/uts/intel/dtrace/sdt.c, usr/src/uts/common/dtrace/sdt_subr.c.
"""

# ruff: noqa: ARG002  (the contract passes more than SDT needs)

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from emu.elf_symbols import Symbol
from emu.frame import Frame
from emu.patcher import Patcher, Tracepoint
from emu.trap import TrapHandler
from providers.base import Framework, Provider

# Those of illumos's table (sdt_providers) that the teaching kernel has sites of; the last takes what is left.
PREFIXES: Final = {
    "__cpu_sysinfo_": "sysinfo",
    "__cpu_vminfo_": "vminfo",
    "__sched_": "sched",
    "__proc_": "proc",
    "__io_": "io",
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
    """A probe's name as the kernel linker found it, and the address of the call's operand."""

    name: str
    offset: int


class IllumosKernel(Protocol):
    """The interface of a kernel guest for this provider."""

    patcher: Patcher
    probe_frames: int | None
    """While a probe fires: how many frames its stack leaves out; None otherwise."""

    def symbol_at(self, address: int) -> tuple[Symbol, int] | None:
        """Return the symbol an address is in, and how far."""
        ...


def split(name: str) -> tuple[str, str]:
    """Return the provider and the probe's name that a site's name stands for."""
    prefix = next(prefix for prefix in PREFIXES if name.startswith(prefix))
    return PREFIXES[prefix], name.removeprefix(prefix).replace("__", "-")


@dataclass(slots=True, eq=False)
class IllumosProbe:
    """A probe: its sites, which share module, function and name."""

    tracepoints: list[Tracepoint]


class IllumosProvider(Provider):
    """One of illumos's SDT providers."""

    def __init__(self, name: str, sdt: IllumosSdt) -> None:
        self.name = name
        self._sdt = sdt

    def enable(self, probe_id: int, arg: IllumosProbe) -> None:
        """Put the LOCK prefixes in (sdt_enable)."""
        for tracepoint in arg.tracepoints:
            self._sdt.kernel.patcher.install(tracepoint)

    def disable(self, probe_id: int, arg: IllumosProbe) -> None:
        """Take them out (sdt_disable)."""
        for tracepoint in arg.tracepoints:
            self._sdt.kernel.patcher.remove(tracepoint)

    def argument_value(self, probe_id: int, arg: IllumosProbe, index: int) -> int | None:
        """Return an argument beyond the fifth: the sixth is in its register still (sdt_getarg)."""
        frame = self._sdt.traps.core.trapframe
        return frame.argument(index) if frame is not None else 0

    def destroy(self, probe_id: int, arg: IllumosProbe) -> None:
        """Forget a probe."""
        for tracepoint in arg.tracepoints:
            self._sdt.kernel.patcher.forget(tracepoint)


class IllumosSdt:
    """The providers of one kernel, and the handler of their traps.  Making one loads them."""

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
        traps.add(self._invop)

    def _create(self, site: IllumosSite) -> None:
        """Make a probe, or give one of these names another site (sdt_provide_module)."""
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
        """Fire the probe of a site; the nop it stands on is emulated (sdt_invop)."""
        probe_id = self._probes.get(address)
        if probe_id is None:
            return 0
        self.kernel.probe_frames = 0
        try:
            self._framework.probe(probe_id, *frame.arguments())
        finally:
            self.kernel.probe_frames = None
        return NOP_CODE
