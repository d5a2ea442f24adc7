"""A Linux program ready to be traced: the guest, stopped at `main`, and the pid and USDT providers over it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Final

from emu.guest.base import GuestError
from emu.guest.linux.environment import ENVIRONMENT
from emu.guest.linux.guest import LinuxGuest, Program
from emu.guest.linux.stdio import Standard
from emu.isa import DEFAULT_ISA, Isa
from providers.fasttrap import (
    Fasttrap,
    Fidelity,
    PidError,
    PidProbes,
    UsdtProbes,
    Wanted,
    parse_provider,
    probe_name,
)
from providers.profile import Profile
from providers.syscall import LinuxCalls, Syscall
from trapline.consumer.compiling import ProcessProbeError
from trapline.framework.dtrace import DTrace
from trapline.framework.program import ProbeDescription
from trapline.programs import program_isa

PID: Final = "pid"
_REFUSALS_TOLD: Final = 5


class EvalTime(Enum):
    """How far a program has come when its probes are created (option evaltime)."""

    EXEC = "exec"
    """Not an instruction was executed; of a dynamic program only its interpreter is there beside it."""
    PREINIT = "preinit"
    """At the program's own entry: its libraries are loaded."""
    POSTINIT = "postinit"
    MAIN = "main"
    """At main, where the program has such a symbol; else at its entry."""


@dataclass(frozen=True, slots=True)
class LinuxOptions:
    """How a Linux guest is built."""

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


@dataclass(slots=True)
class Refusals:
    """Why tracepoints were not installed: the first are reported as they come, the rest counted."""

    report: Callable[[str], object]
    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Take one."""
        self.texts.append(text)
        if len(self.texts) <= _REFUSALS_TOLD:
            self.report(text)

    def rest(self) -> tuple[str, ...]:
        """Return what there is to say of those that were not reported."""
        more = len(self.texts) - _REFUSALS_TOLD
        return (f"{more} more tracepoints were refused (trapline sites --provider pid shows why)",) if more > 0 else ()


@dataclass(slots=True)
class LinuxMachine:
    """A Linux program, stopped, and the framework over it."""

    guest: LinuxGuest
    dtrace: DTrace
    fasttrap: Fasttrap
    pid: PidProbes
    usdt: UsdtProbes
    refusals: Refusals
    told: bool = False

    @property
    def target(self) -> int:
        """The program's process number ($target)."""
        return self.guest.target

    def provide(self, wanted: ProbeDescription) -> ProbeDescription:
        """Make the probes of processes that a description asks for, and return it as they are named.

        Raises `ProcessProbeError`.
        """
        parsed = parse_provider(wanted.provider)
        if parsed is None:
            return wanted
        name, pid = parsed
        try:
            if name == PID:
                module = self.pid.provide(pid, Wanted(wanted.module, wanted.function, wanted.name))
                return replace(wanted, module=module)
            self.usdt.provide(name, pid)
            return replace(wanted, name=probe_name(wanted.name))
        except PidError as error:
            raise ProcessProbeError(error.tag, str(error)) from None

    def ended(self) -> Sequence[str]:
        """Return, once, how the program ended, and how many refusals were not told one by one."""
        ending = self.guest.ending()
        if ending is None or self.told:
            return ()
        self.told = True
        return (*self.refusals.rest(), ending)


def start_guest(options: LinuxOptions) -> LinuxGuest:
    """Start a program and let it run to where probes are created.  Raises `emu.guest.base.GuestError`."""
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
    )
    if options.evaltime is not EvalTime.EXEC:
        guest.run_to_start(main=options.evaltime is not EvalTime.PREINIT)
    if guest.exit_status is not None:
        raise GuestError(f"{options.words[0]}: {guest.ending()} before it began (status {guest.exit_status})")
    return guest


def start(options: LinuxOptions) -> LinuxMachine:
    """Start a program, let it run to where probes are created, and put framework and providers over it.

    Raises `emu.guest.base.GuestError`.
    """
    guest = start_guest(options)
    dtrace = DTrace(guest, guest.traps.core)
    Profile(dtrace, guest)
    calls = LinuxCalls(guest.kernel, dtrace.probe)
    Syscall(dtrace, [calls], forgetful=options.fidelity is Fidelity.FREEBSD)
    refusals = Refusals(options.report)
    fasttrap = Fasttrap(guest.kernel, dtrace, options.fidelity, report=refusals.add)
    pid = PidProbes(fasttrap, dtrace, guest.objects, dtrace.probes_created)
    return LinuxMachine(guest, dtrace, fasttrap, pid, UsdtProbes(fasttrap, dtrace, guest.objects), refusals)
