"""A Linux kernel ready to be traced: the booted machine, and the providers over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from emu.engine.events.event_counts import EventCounts
from emu.engine.time.clock import DEFAULT_RATE
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files import module_files, store
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.guest.linux_kernel.machine import initramfs, snapshot
from emu.guest.linux_kernel.machine.machine import RAM, LinuxKernelMachine, MachineParts
from emu.isa import DEFAULT_ISA, Isa
from emu.probe.trap import TrapHandler
from emu.support.immutable import immutable
from providers.base import Framework
from providers.cpc import Cpc
from providers.linux_kernel.events import PROVIDERS
from providers.linux_kernel.fbt import Functions, LinuxFbt
from providers.linux_kernel.kinst import LinuxKinst
from providers.linux_kernel.named import NamedProbes
from providers.linux_kernel.refusals import Refusals
from providers.linux_kernel.registrations import Registrations
from providers.linux_kernel.syscall import KernelCalls
from providers.linux_kernel.text import Text
from providers.linux_kernel.tracepoints import Tracepoints
from providers.profile import Profile
from providers.syscall import Syscall
from trapline import dof
from trapline.framework.base.glob import is_glob, matcher
from trapline.framework.device.dtrace import DTrace
from trapline.machine.linux_kernel_programs import LinuxKernelPrograms
from trapline.machine.linux_kernel_sources import KernelFunctions, ModuleFunctions, Signatures, TracepointTypes
from trapline.types.btf import BtfTypes
from trapline.types.linux_kernel import LinuxKernelNames, LinuxKernelTypes

# The longest line of a terminal (N_TTY_BUF_SIZE).
_LONGEST_COMMAND: Final = 4000
# Where tracing of a boot begins.  The kernel has applied its alternatives, set ftrace's nops and read the blacklist of
# kprobes by then; its initcalls are to come (Linux 6.12 init/main.c, do_basic_setup).
BOOT_START: Final = "driver_init"


@immutable
class LinuxKernelOptions:
    """The options of a Linux kernel's machine; the defaults are those of `trapline dtrace`."""

    isa: Isa = DEFAULT_ISA
    commands: tuple[str, ...] = ()
    """Command lines for its shell; none: it is switched off at once."""
    root: Path | None = None
    """The directory that it starts with; None: busybox alone."""
    console: Callable[[bytes], object] = lambda _data: None
    quiet: bool = True
    """Whether the kernel prints no messages on the console."""
    append: str = ""
    """Additional words of its command line."""
    modules: tuple[str, ...] = ()
    """Modules to load before tracing begins, beside those that they need."""
    ram: int | None = None
    rate: int = DEFAULT_RATE
    accelerated: bool | None = None
    boot: bool = False
    """Whether tracing begins during the boot, before the drivers (`BOOT_START`)."""
    report: Callable[[str], object] = lambda _text: None
    """Takes messages about probes of programs."""


@dataclass(slots=True)
class TracedLinuxKernel:
    """A booted kernel whose command has been typed, and the framework over it."""

    guest: LinuxKernelGuest
    dtrace: DTrace
    names: LinuxKernelNames
    text: Text
    """The breakpoints in its text."""
    programs: LinuxKernelPrograms
    """The probes of programs."""
    told: bool = False

    @property
    def target(self) -> int:
        """$target: the process of -p, or the one that the command runs in."""
        return self.programs.target

    def ended(self) -> Sequence[str]:
        """Return, once, that the process of -p has ended, or the command with an error."""
        if self.programs.gone and not self.told:
            self.told = True
            return (*self.programs.rest(), f"pid {self.target} has exited")
        status = self.guest.machine.status
        if self.told or not status:
            return ()
        self.told = True
        return (*self.programs.rest(), f"the command has exited with status {status}")


def _matches(pattern: str, name: str) -> bool:
    test = matcher(pattern)
    return test is None or bool(test(name))


def _modules(options: LinuxKernelOptions, kernel: store.StoredKernel) -> dict[str, bytes]:
    """Return the modules to load, by name, in their order.  Raises `KernelFileError`."""
    if options.modules and not kernel.modules.is_dir():
        raise KernelFileError(
            f"no modules of the {options.isa.title} kernel are stored; fetch it again with: "
            f"trapline kernel get {options.isa.name}"
        )
    return module_files.with_dependencies(options.modules, module_files.files_in(kernel.modules))


def machine_of(options: LinuxKernelOptions) -> LinuxKernelMachine:
    """Return a machine with the user's kernel, not yet booted.  Raises `KernelFileError`."""
    kernel = store.stored(options.isa)
    busybox = kernel.busybox.read_bytes()
    modules = _modules(options, kernel)
    if options.root is None:
        archive = initramfs.of_busybox(busybox, modules)
    else:
        archive = initramfs.of_root(options.root, busybox, modules)
    parts = MachineParts(
        kernel.image,
        archive,
        ram=options.ram or RAM,
        append=options.append,
        quiet=options.quiet,
        rate=options.rate,
        accelerated=options.accelerated,
    )
    return LinuxKernelMachine(parts, options.console)


def _code(guest: LinuxKernelGuest, address: int, size: int) -> bytes:
    """Return code as it is without breakpoints of ours; nothing for the copy of an instruction."""
    return b"" if address in guest.executable.reach else guest.patcher.original(address, size)


def command_line(commands: Sequence[str]) -> bytes:
    """Return the typed line that runs commands, one after the other.  Raises `KernelFileError`."""
    line = "; ".join(commands) or ":"
    data = line.replace("\n", "; ").encode("utf-8", "surrogateescape")
    if len(data) > _LONGEST_COMMAND:
        raise KernelFileError(f"-c: {len(data)} bytes; a command for the console has at most {_LONGEST_COMMAND}")
    return data + b"\n"


class Watch(NamedTuple):
    """The parts of a machine that can be watched before its providers are created."""

    guest: LinuxKernelGuest
    dtrace: DTrace


def _boot(machine: LinuxKernelMachine, typed: bytes) -> None:
    """Boot to `BOOT_START`.  Raises `KernelFileError`, and `emu.guest.base.GuestError`."""
    symbol = machine.facts.symbols.get(BOOT_START)
    if symbol is None:
        raise KernelFileError(f"Linux {machine.parts.kernel.release}: its boot cannot be traced: no {BOOT_START}()")
    machine.load()
    machine.boot_to(symbol.value, typed)


def start(
    options: LinuxKernelOptions,
    traps: TrapHandler | None = None,
    watched: Callable[[Watch], Framework] = lambda watch: watch.dtrace,
) -> TracedLinuxKernel:
    """Boot a kernel, or restore it from a snapshot, and type the command.

    `traps` is the chain of handlers, if not a new one; `watched` returns the framework for the
    providers.

    Raises `KernelFileError`, and `emu.guest.base.GuestError`.
    """
    typed = command_line(options.commands)
    machine = machine_of(options)
    if options.boot:
        _boot(machine, typed)
    else:
        snapshot.booted(machine)
        machine.command(typed)
    guest = LinuxKernelGuest(machine, traps)
    dtrace = DTrace(guest, guest.traps.core, dof)
    framework = watched(Watch(guest, dtrace))
    types = LinuxKernelTypes(BtfTypes(guest.facts.btf), guest.modules)
    text = Text(guest.isa, guest.patcher, guest.traps, guest.executable, guest.clock)
    refusals = Refusals(guest)
    functions = KernelFunctions(guest.facts)

    def sources() -> Iterator[tuple[str, Functions]]:
        yield MODULE, functions
        yield from ((one.name, ModuleFunctions(one)) for one in guest.modules.all())

    LinuxKinst(framework, text, sources, refusals=refusals, matches=_matches, report=options.report)
    LinuxFbt(
        framework,
        text,
        sources,
        forbidden=refusals.forbids,
        matches=_matches,
        is_glob=is_glob,
        signatures=Signatures(types),
    )
    Profile(framework, guest)
    Cpc(framework, guest, EventCounts(guest.engine, guest.clock, partial(_code, guest)))
    path = machine.board.abi.calls
    if path is not None:
        Syscall(framework, [KernelCalls(guest, text, framework, path)])
    registrations = Registrations(guest, text, options.report)
    Tracepoints(framework, guest, registrations, matches=_matches, types=TracepointTypes(types))
    for name, events in PROVIDERS.items():
        NamedProbes(name, events, framework, guest, text, registrations, matches=_matches)
    programs = LinuxKernelPrograms(guest, text, dtrace, options.report, "; ".join(options.commands))
    return TracedLinuxKernel(guest, dtrace, LinuxKernelNames(guest.facts, types), text, programs)
