"""SDT: the probes that a kernel declares in linker sets, in each generation of the mechanism.

The life of a probe, in FreeBSD's order:

    load              the linker sets are read; each provider in them becomes one of DTrace's, and
                      each probe one of its probes; `sdt_probe_func` no longer points to the
                      kernel's stub
    enable            the probe's id is set; lockstat's first probe sets `lockstat_enabled`, the
                      first of all probes sets `sdt_probes_enabled`; then the nop at each of its
                      sites becomes a jump
    (a hit)           the site calls `dtrace_probe` with the id: an ordinary call, not a trap
    disable           the jumps become nops again; the flags and the id are cleared

A kernel of an older generation has no nops to patch: its sites test the id (2013), or a flag and
then the id (2018).

Source: FreeBSD sys/cddl/dev/sdt/sdt.c, sys/kern/kern_sdt.c.
"""

# ruff: noqa: ARG002  (the contract passes more than SDT needs)

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final, NamedTuple, Protocol

from emu.displaced.cpu_core import CpuCore, CpuFlag
from emu.guest.kernel.view import Called
from emu.isa import Isa
from emu.isa.base import Jump
from emu.native.guest import LateArguments
from emu.probe.patcher import Patcher, Tracepoint
from providers.base import ArgumentDescription, Framework, Provider
from providers.sdt.sets import ID_OFFSET, Declaration, read_declarations

OWNER: Final = "sdt"
# The module of a probe that does not name one: the linker file.
MODULE: Final = "kernel"
# The function of a probe that does not name one.
FUNCTION: Final = "none"
LOCKSTAT: Final = "lockstat"
# The first generation whose sites are patched, and whose sites call a function of the kernel before `dtrace_probe`.
HOT_PATCHED: Final = 2024
_AFRAMES: Final = 1
_SIXTH: Final = 5


class SdtKernel(Protocol):
    """The interface of a kernel guest for this provider."""

    isa: Isa
    patcher: Patcher
    probe_frames: int | None
    """While a probe of this kind fires, the number of frames that its stack omits; None otherwise."""

    def linker_set(self, name: str) -> tuple[int, int] | None:
        """Return the address and size of a kernel's linker set, None if it has no such set."""
        ...

    def symbol_address(self, name: str) -> int | None:
        """Return the address of a symbol of the kernel, None if there is none."""
        ...

    def load(self, address: int, size: int) -> bytes:
        """Read kernel memory.  Raises `emu.support.words.BadAddressError`."""
        ...

    def store(self, address: int, data: bytes) -> None:
        """Write kernel data.  Raises `emu.support.words.BadAddressError`."""
        ...

    def change_text(self, change: Callable[[], object], continues: int) -> None:
        """Change the kernel's code by a function, as its method of patching says.

        `continues` is the address where a CPU continues that executes the changed instruction.
        """
        ...

    def watch_traced(self) -> None:
        """Prepare for a probe that is about to be enabled, the first time or again."""
        ...

    def call_argument(self, index: int) -> int:
        """Return argument `index` >= 5 of the current call of `dtrace_probe`, after its id."""
        ...

    def thread_field(self, name: str) -> int:
        """Return a word of the current thread, by the name of its offset in `kernel_assym`."""
        ...

    def serve_probes(self, probe: Callable[..., None], describe: Callable[[int], Called]) -> None:
        """Call `probe(id, arg0 ... arg4)` whenever the kernel calls `dtrace_probe`.

        Alternatively machine code does what `describe(id)` says.
        """
        ...


def probe_name(written: str) -> str:
    """Turn each double underscore into a hyphen, from left to right."""
    return written.replace("__", "-")


class PatchedSite(NamedTuple):
    """A site that can be patched."""

    tracepoint: Tracepoint
    target: int
    """The address to which the jump leads."""
    after: int
    """The address after the nop."""


@dataclass(slots=True, eq=False)
class SdtProbe:
    """A probe: its declaration by the kernel, and its sites that can be patched."""

    declaration: Declaration
    sites: tuple[PatchedSite, ...]


class SdtProvider(Provider):
    """One of the providers that a kernel declares."""

    def __init__(self, name: str, sdt: Sdt) -> None:
        self.name = name
        self._sdt = sdt

    def enable(self, probe_id: int, arg: SdtProbe) -> None:
        """Arm a probe."""
        self._sdt.enable(self.name, probe_id, arg)

    def disable(self, probe_id: int, arg: SdtProbe) -> None:
        """Disarm it."""
        self._sdt.disable(self.name, arg)

    def argument_description(self, probe_id: int, arg: SdtProbe, index: int) -> ArgumentDescription | None:
        """Return an argument's types, as the kernel declares them (sdt_getargdesc)."""
        arguments = arg.declaration.arguments
        if index >= len(arguments):
            return None
        types = arguments[index]
        # The mapping is the index: each argument is translated from itself.
        if types is None:
            return ArgumentDescription(index, "")
        return ArgumentDescription(index, types.native, types.translated, index)

    def argument_value(self, probe_id: int, arg: SdtProbe, index: int) -> int | None:
        """Return an argument beyond the five that are passed (sdt_getargval)."""
        return self._sdt.argument_value(index)

    def late_arguments(self, probe_id: int, arg: SdtProbe) -> LateArguments:
        """Return where those are."""
        return LateArguments.SDT if self._sdt.generation >= HOT_PATCHED else LateArguments.KERNEL_CALL

    def destroy(self, probe_id: int, arg: SdtProbe) -> None:
        """Forget a probe."""
        self._sdt.forget(arg)

    def unregistered(self) -> None:
        """Remove the provider with sdt.ko."""
        self._sdt.gone(self.name)


@dataclass(slots=True)
class _Flag:
    """A variable of the kernel that is true while any probe needs it."""

    address: int | None
    users: int = 0

    def take(self, kernel: SdtKernel) -> None:
        """Add a user: the first one sets the variable."""
        self.users += 1
        if self.users == 1 and self.address is not None:
            kernel.store(self.address, b"\1")

    def drop(self, kernel: SdtKernel) -> None:
        """Remove a user: the last one clears the variable."""
        self.users -= 1
        if not self.users and self.address is not None:
            kernel.store(self.address, b"\0")


@dataclass(slots=True)
class Sdt:
    """All SDT providers of one kernel.  Creating it loads them (sdt_load)."""

    framework: Framework
    kernel: SdtKernel
    core: CpuCore
    providers: dict[str, SdtProvider] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    """The reasons why probes were left out, a line each."""
    generation: int = 0
    """The year of the kernel's mechanism; 0: it has none."""
    _enabled: _Flag = field(init=False)
    _lockstat: _Flag = field(init=False)
    _aframes: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Read the kernel's declarations, and serve its calls."""
        kernel = self.kernel
        self._enabled = _Flag(kernel.symbol_address("sdt_probes_enabled"))
        self._lockstat = _Flag(kernel.symbol_address("lockstat_enabled"))
        generation = kernel.symbol_address("sdt_generation")
        if generation is None:
            return
        self.generation = int.from_bytes(kernel.load(generation, 4), "little")
        declared = read_declarations(kernel.linker_set, kernel.load, kernel.isa.word)
        self.refused.extend(declared.refused)
        for name in declared.providers:
            self.providers[name] = SdtProvider(name, self)
            self.framework.register(self.providers[name])
        for declaration in declared.probes:
            self._create(declaration)
        kernel.serve_probes(self._fire, self._describe)
        self._point("sdt_dtrace_probe" if self.generation >= HOT_PATCHED else "dtrace_probe")

    def _point(self, target: str) -> None:
        """Make the sites call a function of the kernel."""
        pointer, address = self.kernel.symbol_address("sdt_probe_func"), self.kernel.symbol_address(target)
        if pointer is not None and address is not None:
            self.kernel.store(pointer, address.to_bytes(self.kernel.isa.word, "little"))

    def _create(self, declaration: Declaration) -> None:
        """Make a probe, unless there is one of these names (sdt_create_probe)."""
        provider = self.providers[declaration.provider]
        names = (declaration.module or MODULE, declaration.function or FUNCTION, probe_name(declaration.name))
        if self.framework.probe_lookup(provider, *names):
            return
        record = SdtProbe(declaration, tuple(self._sites(declaration, ":".join((provider.name, *names)))))
        aframes = _AFRAMES + (self.generation >= HOT_PATCHED and provider.name == LOCKSTAT)
        self._aframes[self.framework.probe_create(provider, *names, aframes, record)] = aframes

    def _sites(self, declaration: Declaration, name: str) -> list[PatchedSite]:
        """Make the tracepoints of the sites that can be patched."""
        jump, patcher = self.kernel.isa.jump, self.kernel.patcher
        made = []
        for site in declaration.tracepoints:
            reason = jump.refusal(site.address, site.target) or _no_nop(jump, patcher, site.address)
            if reason is None:
                tracepoint = patcher.create(site.address, jump.patch(site.address, site.target), OWNER)
                made.append(PatchedSite(tracepoint, site.target, site.address + len(jump.nop)))
            else:
                self.refused.append(f"{name}: its site at {site.address:#x} is left out: {reason}")
        return made

    def enable(self, provider: str, probe_id: int, record: SdtProbe) -> None:
        """Arm a probe (sdt_enable)."""
        self.kernel.watch_traced()
        self.kernel.store(record.declaration.address + ID_OFFSET, probe_id.to_bytes(4, "little"))
        if provider == LOCKSTAT:
            self._lockstat.take(self.kernel)
        self._enabled.take(self.kernel)
        for site in record.sites:
            # FreeBSD has a rendezvous of all CPUs for each site (sdt_machdep.c, sdt_tracepoint_patch).
            self.kernel.change_text(partial(self.kernel.patcher.install, site.tracepoint), site.target)

    def disable(self, provider: str, record: SdtProbe) -> None:
        """Disarm a probe (sdt_disable)."""
        for site in record.sites:
            self.kernel.change_text(partial(self.kernel.patcher.remove, site.tracepoint), site.after)
        if provider == LOCKSTAT:
            self._lockstat.drop(self.kernel)
        self._enabled.drop(self.kernel)
        self.kernel.store(record.declaration.address + ID_OFFSET, bytes(4))

    def forget(self, record: SdtProbe) -> None:
        """Drop a probe's tracepoints."""
        for site in record.sites:
            self.kernel.patcher.forget(site.tracepoint)

    def argument_value(self, index: int) -> int:
        """Return argument `index` >= 5: the newest generation has a sixth, and no more."""
        if self.generation < HOT_PATCHED:
            return self.kernel.call_argument(index)
        if index == _SIXTH:
            return self.kernel.thread_field("TD_SDT_ARG5")
        self.core.flags |= CpuFlag.ILLOP
        return 0

    def unload(self) -> None:
        """Remove the providers.

        Raises ValueError while a probe is enabled; nothing is changed then.
        """
        for provider in list(self.providers.values()):
            self.framework.unregister(provider)
            provider.unregistered()

    def gone(self, provider: str) -> None:
        """Handle the end of a provider.

        Without any provider the kernel's calls have no effect (sdt_unload).
        """
        del self.providers[provider]
        if not self.providers:
            self._point("sdt_probe_stub")

    def _describe(self, probe_id: int) -> Called:
        return Called(self.framework.native_runs(probe_id), self._aframes.get(probe_id))

    def _fire(self, probe_id: int, *args: int) -> None:
        self.kernel.probe_frames = self._aframes.get(probe_id)  # None: a system call's
        try:
            self.framework.probe(probe_id, *args)
        finally:
            self.kernel.probe_frames = None


def _no_nop(jump: Jump, patcher: Patcher, site: int) -> str | None:
    """Return what is wrong with the bytes at a site, None if they are the nop."""
    found = patcher.original(site, len(jump.nop))
    return None if found == jump.nop else f"its bytes are {found.hex(' ')}, not {jump.nop.hex(' ')}"
