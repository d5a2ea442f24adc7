"""Machines whose firings are recorded: each guest, with what the recorder needs of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from emu.engine.engine import Engine
from emu.guest.base import Guest
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA, Isa
from emu.probe.trap import TrapHandler
from trapline.consumer.program.compile import Provide, provide_nothing
from trapline.d.types.names import Foreign, NoNames
from trapline.framework.device.dtrace import DTrace
from trapline.lab.step.faults import Fault
from trapline.lab.step.recording import StepError
from trapline.lab.step.subject import KernelSubject, LinuxSubject, Subject
from trapline.machine.kernel_machine import KernelOptions, NoKernelError, boot, kernel_guest
from trapline.machine.kernel_target import KernelTarget
from trapline.machine.programs import is_missing, program_isa, split
from trapline.support.own_files import OWN, TargetError, own_program
from trapline.types import ProcessNames, types_of

_SDT: Final = 2024


@dataclass(frozen=True, slots=True)
class StepRequest:
    """A request for a recording."""

    clause: str
    """A clause of D; with `uprobe` a definition as `trapline uprobe` takes it."""
    isa: Isa = DEFAULT_ISA
    guest: str | None = None
    """`kernel`, `linux`, `linux-kernel`; None: as the command demands."""
    trap_path: TrapPath = TrapPath.HOST
    command: str | None = None
    root: Path | None = None
    sdt: int = _SDT
    count: int = 1
    from_enable: bool = False
    """Whether the patching is shown, too."""
    fault: Fault | None = None
    """The mistake that is made on purpose."""
    after: int = 0
    """Instructions that are recorded after the resume."""
    uprobe: bool = False

    @property
    def kind(self) -> str:
        """The guest that is meant."""
        if self.guest is not None:
            return self.guest
        if self.root is not None or self.uprobe:
            return "linux"
        words = split(self.command) if self.command else ()
        if words and (words[0].startswith(OWN) or program_isa(words, None) is not None or "/" in words[0]):
            return "kernel" if "/" in words[0] and not Path(words[0]).is_file() else "linux"
        return "kernel"


@dataclass(slots=True)
class SteppedMachine:
    """A machine that is ready to be recorded."""

    guest: Guest
    subject: Subject
    chains: Callable[[], Sequence[TrapHandler]]
    dtrace: DTrace
    target: Callable[[], int] = lambda: 0
    provide: Provide = provide_nothing
    foreign: Foreign = field(default_factory=NoNames)
    libraries: tuple[str, ...] = ()
    written: bytearray = field(default_factory=bytearray)
    """The output of the guest."""


def open_machine(request: StepRequest) -> SteppedMachine:
    """Return the machine that a request asks for.

    Raises `StepError`, `emu.guest.base.GuestError`.
    """
    try:
        return _OPENERS[request.kind](request)
    except (NoKernelError, TargetError) as error:
        raise StepError(str(error)) from None
    except ValueError as error:
        raise StepError(f"-c {request.command}: {error}") from None


def _plans_in_python(engine: Engine) -> None:
    """Carry out each plan in Python: then a hit is over when its breakpoint has been taken."""
    engine.accelerated = False


def _open_kernel(request: StepRequest) -> SteppedMachine:
    if request.root is not None:
        raise StepError("--root is for Linux programs; leave --guest kernel out, or --root")
    if request.command and is_missing(request.command, request.isa):
        raise StepError(
            f"-c '{request.command}': no such program, here or in the guest (-c 'ls /bin' lists the guest's)"
        )
    written = bytearray()
    options = KernelOptions(
        isa=request.isa,
        trap_path=request.trap_path,
        command=request.command,
        sdt=request.sdt,
        console=written.extend,
    )
    fault = request.fault
    table = fault.table(request.isa) if fault and fault.table else None
    machine = boot(kernel_guest(options, displaced=table))
    guest = machine.guest
    if fault and fault.handler:
        guest.traps.wrap(partial(fault.handler, guest.engine))
    _plans_in_python(guest.engine)
    guest.host_trap.use_python()
    target = KernelTarget(guest, request.command or "")
    return SteppedMachine(
        guest,
        KernelSubject(guest, table),
        lambda: (guest.traps, guest.userland.traps),
        machine.dtrace,
        target.number,
        machine.probes.provide,
        ProcessNames(machine.names, lambda: machine.probes.objects(target.number()), types_of),
        ("common", "kernel", guest.isa.name),
        written,
    )


def _open_linux(request: StepRequest) -> SteppedMachine:
    # Only the user of a Linux program waits for its modules.
    from emu.guest.linux.fs.stdio import Standard  # noqa: PLC0415
    from trapline.machine import linux_machine  # noqa: PLC0415

    if not request.command:
        raise StepError("a Linux program is needed: -c 'PROGRAM ARGUMENTS'")
    words = own_program(split(request.command), request.isa)
    written = bytearray()
    standard = Standard(write=written.extend, error=written.extend)
    options = linux_machine.LinuxOptions(words, root=request.root, standard=standard)
    machine = linux_machine.start(options)
    guest = machine.guest
    _plans_in_python(guest.engine)
    return SteppedMachine(
        guest,
        LinuxSubject(guest),
        lambda: (guest.traps,),
        machine.dtrace,
        lambda: machine.target,
        machine.probes.provide,
        ProcessNames(NoNames(), lambda: machine.probes.objects(machine.target), types_of),
        ("common", "linux", guest.isa.name),
        written,
    )


def _open_linux_kernel(request: StepRequest) -> SteppedMachine:
    if request.trap_path is TrapPath.GUEST:
        raise StepError("--trap guest: a Linux kernel has no handlers of DTrace's; leave it out")
    from emu.guest.linux_kernel.errors import KernelFileError  # noqa: PLC0415  only its user waits for its modules
    from trapline.lab.step.subject import LinuxKernelSubject  # noqa: PLC0415
    from trapline.machine import linux_kernel_machine as linux_kernel  # noqa: PLC0415

    commands = (request.command,) if request.command else ()
    try:
        machine = linux_kernel.start(linux_kernel.LinuxKernelOptions(request.isa, commands, request.root))
    except KernelFileError as error:
        raise StepError(str(error)) from None
    guest = machine.guest
    guest.host_trap.use_python()
    return SteppedMachine(
        guest,
        LinuxKernelSubject(guest, machine.text.plan),
        lambda: (guest.traps,),
        machine.dtrace,
        lambda: machine.target,
        foreign=machine.names,
        libraries=("common", "linux-kernel", "linux", guest.isa.name),
    )


_OPENERS: Final[Mapping[str, Callable[[StepRequest], SteppedMachine]]] = {
    "kernel": _open_kernel,
    "linux": _open_linux,
    "linux-kernel": _open_linux_kernel,
}
