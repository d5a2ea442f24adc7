"""A Linux program ready to be traced: the guest, and the pid and USDT providers over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from emu.engine.events.event_counts import EventCounts
from emu.guest.base import GuestError
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.kernel import RAM
from emu.guest.linux.launch import ENVIRONMENT, Program
from emu.isa import DEFAULT_ISA, Isa
from emu.support.immutable import immutable
from providers.cpc import Cpc
from providers.fasttrap import Fasttrap
from providers.fidelity import Fidelity
from providers.profile import Profile
from providers.syscall import Syscall
from providers.syscall.linux import LinuxCalls
from trapline import dof
from trapline.framework.device.dtrace import DTrace
from trapline.machine.process_probes import ProcessProbes
from trapline.machine.programs import program_isa


class EvalTime(Enum):
    """The point in a program's start at which its probes are created (option evaltime)."""

    EXEC = "exec"
    """No instruction was executed; of a dynamic program's libraries only the interpreter is mapped."""
    PREINIT = "preinit"
    """At the program's own entry: its libraries are loaded."""
    POSTINIT = "postinit"
    MAIN = "main"
    """At main, if the program has such a symbol; else at its entry."""


@immutable
class LinuxOptions:
    """The options of a Linux guest."""

    words: tuple[str, ...]
    """The program and its arguments."""
    isa: Isa | None = None
    """None: the program's."""
    root: Path | None = None
    evaltime: EvalTime = EvalTime.MAIN
    fidelity: Fidelity = Fidelity.EXACT
    environment: tuple[tuple[str, str | None], ...] = ()
    """Changes to the environment, in order; None: not set."""
    standard: Standard | None = None
    report: Callable[[str], object] = lambda _text: None
    accelerated: bool | None = None
    ram: int | None = None
    """Size in bytes of the guest's memory; None: its default."""
    quantum: int | None = None
    """Instructions of a thread's turn; None: the scheduler's own."""
    cpus: int = 1
    seed: int = 0
    """A number that decides about the order of several CPUs."""


@dataclass(slots=True)
class LinuxMachine:
    """A Linux program, stopped, and the framework over it."""

    guest: LinuxGuest
    dtrace: DTrace
    probes: ProcessProbes
    told: bool = False

    @property
    def target(self) -> int:
        """The program's process number ($target)."""
        return self.guest.target

    def ended(self) -> Sequence[str]:
        """Return, once, how the program ended, and the number of refusals that were not reported."""
        ending = self.guest.ending()
        if ending is None or self.told:
            return ()
        self.told = True
        return (*self.probes.refusals.rest(), ending)


def start_guest(options: LinuxOptions) -> LinuxGuest:
    """Start a program and let it run to the point at which probes are created.

    Raises `emu.guest.base.GuestError`.
    """
    environment = dict(ENVIRONMENT)
    for name, value in options.environment:
        if value is None:
            environment.pop(name, None)
        else:
            environment[name] = value
    isa = options.isa or program_isa(options.words, options.root) or DEFAULT_ISA
    guest = LinuxGuest(
        isa,
        Program(options.words[0], tuple(options.words[1:]), environment),
        root=options.root,
        standard=options.standard,
        report=options.report,
        accelerated=options.accelerated,
        ram=options.ram or RAM,
        quantum=options.quantum,
        cpus=options.cpus,
        seed=options.seed,
    )
    if options.evaltime is not EvalTime.EXEC:
        guest.run_to_start(main=options.evaltime is not EvalTime.PREINIT)
    if guest.exit_status is not None:
        raise GuestError(f"{options.words[0]}: {guest.ending()} before it began (status {guest.exit_status})")
    return guest


def _counts(guest: LinuxGuest, fasttrap: Fasttrap) -> EventCounts | None:
    """Return what counts the events of programs; None: several CPUs have several clocks."""

    def code(address: int, size: int) -> bytes:
        current = guest.kernel.current
        return b"" if current is None else fasttrap.original(current.process, address, size)

    return EventCounts(guest.engine, guest.clock, code) if guest.cpu_count == 1 else None


def start(options: LinuxOptions) -> LinuxMachine:
    """Run a program to the point at which probes are created; add framework and providers.

    Raises `emu.guest.base.GuestError`.
    """
    guest = start_guest(options)
    dtrace = DTrace(guest, guest.traps.core, dof, guest.cpu_count)
    Profile(dtrace, guest)
    calls = LinuxCalls(guest.kernel, dtrace.probe)
    Syscall(dtrace, [calls], forgetful=options.fidelity is Fidelity.FREEBSD)
    probes = ProcessProbes(guest.kernel, guest.objects, dtrace, options.fidelity, options.report)
    Cpc(dtrace, guest, _counts(guest, probes.fasttrap), kernel=False)
    return LinuxMachine(guest, dtrace, probes)
