"""A machine ready to be traced: a booted kernel guest, the framework, and the providers."""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import field
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

from emu.displaced.decision import DisplacedTable
from emu.elf.image import Image, image_of_file
from emu.engine.events.event_counts import Code
from emu.engine.time.clock import DEFAULT_RATE
from emu.guest.kernel.boot import images
from emu.guest.kernel.guest import KernelGuest
from emu.guest.kernel.smp.text_changes import Patching
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA, Isa
from emu.probe.trap import TrapHandler
from emu.support.did_you_mean import did_you_mean
from emu.support.immutable import immutable
from providers.base import Framework
from providers.fidelity import Fidelity
from trapline import dof
from trapline.framework.device.dtrace import DTrace
from trapline.machine.guest_consumers import GuestConsumers
from trapline.machine.kernel_providers import LOADER_CONF, PRELOADED, KernelProviders
from trapline.machine.process_probes import ProcessProbes
from trapline.types import KernelNames, KernelSignatures, ModuleTypes, Types, types_of

START_UP_SCRIPT = "etc/rc"
# The default generation of the kernel's SDT.
SDT_GENERATION = 2024
ILLUMOS_SDT = 2005


_MODULES = "boot/kernel/"


class NoKernelError(Exception):
    """The requested kernel or module does not exist; the message names it."""


@immutable
class KernelOptions:
    """The options of a kernel guest; the defaults are those of `trapline dtrace`."""

    isa: Isa = DEFAULT_ISA
    trap_path: TrapPath = TrapPath.HOST
    fidelity: Fidelity = Fidelity.EXACT
    sdt: int = SDT_GENERATION
    """The generation of SDT the kernel is built with, by its year."""
    cpus: int = 1
    """More than one: the kernel for several CPUs, which take turns by `seed`."""
    seed: int = 0
    patching: Patching = Patching.STOP_MACHINE
    """How the kernel's static probes are patched, if there are several CPUs."""
    load: tuple[str, ...] = ()
    """Names of the modules that the boot loader loads, beside DTrace's own."""
    command: str | None = None
    """A command line for the guest's shell, run instead of the start-up script."""
    environment: tuple[tuple[str, str | None], ...] = ()
    """Changes to the environment of the command, in order; None: not set."""
    console: Callable[[bytes], object] = lambda _text: None
    console_input: bytes = b""
    rate: int = DEFAULT_RATE
    accelerated: bool | None = None
    added: Mapping[str, bytes] = field(default_factory=dict)
    """Files of the guest beside those of its initial file system (path without leading slash ->
    content)."""

    def files(self) -> Mapping[str, bytes]:
        """Return the files that are added to the guest's initial file system, or replaced in it."""
        script = {} if self.command is None else {START_UP_SCRIPT: os.fsencode(self._script(self.command))}
        asked = "".join(f'{name}_load="YES"\n' for name in self.load).encode()
        return {LOADER_CONF: PRELOADED + asked, **self.added, **script}

    def _script(self, command: str) -> str:
        changes = (
            f"unset {name}" if value is None else f"export {shlex.quote(f'{name}={value}')}"
            for name, value in self.environment
        )
        return "".join(f"{line}\n" for line in (*changes, command))


@immutable
class KernelMachine:
    """A booted guest, not yet past process 1's first instruction, and the framework over it."""

    guest: KernelGuest
    dtrace: DTrace
    probes: ProcessProbes
    """The probes of the guest's user programs."""
    names: KernelNames
    """The kernel's types and symbols, for D programs."""


def kernel_guest(
    options: KernelOptions, traps: TrapHandler | None = None, displaced: DisplacedTable | None = None
) -> KernelGuest:
    """Return a kernel guest that is not yet booted.

    `displaced` says what the host's trap path does, if not the ISA's table.

    Raises `NoKernelError`.
    """
    _check_modules(options)
    return _make(options)(
        options.isa,
        trap_path=options.trap_path,
        traps=traps,
        image=_image(options),
        files=options.files(),
        console=options.console,
        console_input=options.console_input,
        rate=options.rate,
        accelerated=options.accelerated,
        displaced=displaced,
    )


def _make(options: KernelOptions) -> Callable[..., KernelGuest]:
    """Return what makes the guest, with one CPU or several.  Raises `NoKernelError`."""
    if options.cpus == 1 and options.patching is not Patching.STOP_MACHINE:
        raise NoKernelError(f"-x patch={options.patching.value} is for several CPUs: add --cpus N")
    if options.cpus == 1:
        return KernelGuest
    if options.sdt != SDT_GENERATION:
        raise NoKernelError(f"the kernel with SDT of {options.sdt} is for one CPU: leave --cpus out, or -x sdt")
    from emu.guest.kernel.smp.turns import SeveralCpus  # noqa: PLC0415  most guests have one

    return partial(SeveralCpus, cpus=options.cpus, seed=options.seed, patching=options.patching)


def _check_modules(options: KernelOptions) -> None:
    """Refuse to load a module that is missing: the boot loader's console is not shown."""
    there = (path for path in (*images.programs(options.isa), *options.added) if path.startswith(_MODULES))
    known = {path.removeprefix(_MODULES).removesuffix(".ko") for path in there}
    for name in options.load:
        if name not in known:
            hint = did_you_mean(name, sorted(known))
            raise NoKernelError(f"there is no kernel module '{name}' for {options.isa.title}{hint}")


def _image(options: KernelOptions) -> Path | None:
    """Return the kernel to boot, None for the usual one."""
    if options.sdt == SDT_GENERATION:
        return None
    path = images.kernel(options.isa, f"sdt-{options.sdt}")
    if not path.is_file():
        reason = ": illumos does not run on it" if options.sdt == ILLUMOS_SDT else ""
        raise NoKernelError(f"there is no {options.isa.title} kernel with SDT of {options.sdt}{reason}")
    return path


class _KernelTypes(NamedTuple):
    """Types that the machines of one kernel share."""

    kernel: Types
    of_module: Callable[[Image], Types]
    """Returns the types of a module."""


def _types(image: Image) -> _KernelTypes:
    """Return the types of a kernel and its modules.

    Kernels of other generations are built without types, and use those of the usual one.
    """
    path = image.path if image.has_dwarf else images.built(image.isa) / "kernel"
    return _types_of_file(path, image.isa, path.stat().st_mtime_ns)


@lru_cache(maxsize=8)
def _types_of_file(path: Path, isa: Isa, _changed: int) -> _KernelTypes:
    """Return a file's types; machines of one kernel share them, because reading takes long."""
    kernel = types_of(image_of_file(path, isa))
    return _KernelTypes(kernel, lru_cache(maxsize=32)(partial(types_of, parent=kernel)))


def _user_code(guest: KernelGuest, probes: ProcessProbes) -> Code:
    """Return what reads the code of the program that runs, without breakpoints."""

    def code(address: int, size: int) -> bytes:
        current = guest.userland.current
        if current is None:
            return guest.engine.read(address, size)
        return probes.fasttrap.original(current.process, address, size)

    return code


def boot(
    guest: KernelGuest,
    fidelity: Fidelity = Fidelity.EXACT,
    watch: Callable[[Framework], Framework] = lambda framework: framework,
    report: Callable[[str], object] = lambda _text: None,
) -> KernelMachine:
    """Boot a guest and put the framework and the providers over it.

    `watch` may wrap the framework for the providers; `report` is called for tracepoints of user
    programs that were refused.  Raises `emu.guest.base.GuestError`.
    """
    guest.boot()
    dtrace = DTrace(guest, guest.traps.core, dof, guest.cpu_count)
    types, of_module = _types(guest.image)
    probes = ProcessProbes(guest.userland, guest.userland.objects, dtrace, fidelity, report)
    modules = ModuleTypes(guest.isa, lambda: guest.modules, guest.module_file, of_module)
    KernelProviders(guest, dtrace, KernelSignatures(types, modules), fidelity, watch, _user_code(guest, probes))
    GuestConsumers(guest, dtrace)
    return KernelMachine(guest, dtrace, probes, KernelNames(guest.image, types, modules))
