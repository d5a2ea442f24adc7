"""A machine ready to be traced: a booted kernel guest, the framework that sees it, and its providers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from emu.engine.clock import DEFAULT_RATE
from emu.guest.kernel.guest import KernelGuest, TrapPath
from emu.guest.modules import Module
from emu.isa import DEFAULT_ISA, Isa
from emu.trap import TrapHandler
from providers.base import Framework
from providers.fasttrap import Fidelity as FasttrapFidelity
from providers.fbt import FBT, Fidelity
from providers.profile import Profile
from trapline.framework.dtrace import DTrace
from trapline.process_probes import ProcessProbes
from trapline.types import KernelNames, KernelSignatures, types_of

START_UP_SCRIPT = "etc/rc"


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How a kernel guest is built; the defaults are those of `trapline dtrace`."""

    isa: Isa = DEFAULT_ISA
    trap_path: TrapPath = TrapPath.HOST
    fidelity: Fidelity = Fidelity.EXACT
    command: str | None = None
    """A command line for the guest's shell, run instead of the start-up script."""
    console: Callable[[bytes], object] = lambda _text: None
    console_input: bytes = b""
    rate: int = DEFAULT_RATE
    accelerated: bool | None = None

    def files(self) -> Mapping[str, bytes]:
        """Return what replaces files of the guest's initial file system."""
        return {} if self.command is None else {START_UP_SCRIPT: self.command.encode() + b"\n"}


@dataclass(frozen=True, slots=True)
class Machine:
    """A booted guest, not yet past process 1's first instruction, and the framework over it."""

    guest: KernelGuest
    dtrace: DTrace
    probes: ProcessProbes
    """Those of the guest's user programs."""
    names: KernelNames
    """The kernel's types and symbols, for D programs."""


def kernel_guest(options: KernelOptions, traps: TrapHandler | None = None) -> KernelGuest:
    """Return a kernel guest that is not yet booted."""
    return KernelGuest(
        options.isa,
        trap_path=options.trap_path,
        traps=traps,
        files=options.files(),
        console=options.console,
        console_input=options.console_input,
        rate=options.rate,
        accelerated=options.accelerated,
    )


def boot(
    guest: KernelGuest,
    fidelity: Fidelity = Fidelity.EXACT,
    watch: Callable[[Framework], Framework] = lambda framework: framework,
    report: Callable[[str], object] = lambda _text: None,
) -> Machine:
    """Boot a guest and put the framework and the providers over it.

    `watch` may wrap the framework as providers see it; `report` is told of tracepoints of user programs that were
    refused.  Raises `emu.guest.base.GuestError`.
    """
    guest.boot()
    dtrace = DTrace(guest, guest.traps.core)
    types = types_of(guest.image)
    FBT(watch(dtrace), guest.patcher, guest.traps, guest.isa, KernelSignatures(types), fidelity)
    Profile(dtrace, guest)
    probes = ProcessProbes(guest.userland, guest.userland.objects, dtrace, FasttrapFidelity(fidelity.value), report)
    dtrace.load_module(Module("kernel", guest.image.symbols, guest.patcher.original))
    return Machine(guest, dtrace, probes, KernelNames(guest.image, types))
