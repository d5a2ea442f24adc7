"""The command `trapline dtrace`: dtrace(1), on an emulated machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final, TextIO

import click

from emu.elf.debug_files import search_in, usual_folder
from emu.guest.kernel.smp.text_changes import Patching
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA, ISAS
from emu.native import available
from emu.support.one_line import one_line
from providers.fidelity import Fidelity
from trapline.commands.completion import TracerCommand, complete_word
from trapline.consumer.command import main
from trapline.consumer.environment import CommandEnvironment, MachineError, TracedMachine
from trapline.consumer.output import Writer
from trapline.consumer.request import MachineOptions
from trapline.consumer.usage import flag_values
from trapline.d.types.names import NoNames
from trapline.framework.base.program import Program
from trapline.framework.probe.settings import DEFAULTS
from trapline.machine.kernel_machine import KernelOptions, NoKernelError, boot, kernel_guest
from trapline.machine.kernel_target import KernelTarget
from trapline.machine.programs import is_missing, program_isa, split
from trapline.support.own_files import OWN, TargetError, own_program
from trapline.support.process import abandon_output
from trapline.types import ProcessNames, types_of

# The variables that dtrace(1) adds to the environment of the commands of -c (libdtrace's dtrace_vopen).
_ENVIRONMENT: Final = (("LD_NOLAZYLOAD", "1"),)


@click.command(
    "dtrace",
    cls=TracerCommand,
    flags=flag_values,
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Trace a guest with D programs; the flags are those of dtrace(1).",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, shell_complete=complete_word)
@click.pass_context
def dtrace_command(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Trace a guest with D programs; `trapline dtrace --help` lists the flags of dtrace(1)."""
    listing = _machine_code if available() else None
    environment = CommandEnvironment(
        open_machine, sys.stdout, sys.stderr, machine_code=listing, abandon_output=abandon_output
    )
    status = main(arguments, environment)
    ctx.exit(status)


def _machine_code(program: Program, options: Mapping[str, int]) -> Iterator[str]:
    from trapline.framework.native.code_text import listing  # noqa: PLC0415  LLVM is slow to import

    return listing(program, {**DEFAULTS, **options})


def open_machine(wanted: MachineOptions) -> TracedMachine:
    """Boot the machine that the flags describe.

    Raises `MachineError`, and `emu.guest.base.GuestError`.
    """
    if any(command.startswith(OWN) for command in wanted.commands):
        wanted = replace(wanted, commands=tuple(_own(command, wanted.isa) for command in wanted.commands))
    root = Path(wanted.root) if wanted.root else None
    if wanted.debug_root is not None and not Path(wanted.debug_root).is_dir():
        raise MachineError(f"{wanted.debug_root}: not a directory; --debug-root names the folder of debug files")
    search_in(Path(wanted.debug_root) if wanted.debug_root else usual_folder(root))
    if wanted.boot and wanted.guest != "linux-kernel":
        raise MachineError("-x boot is for Linux kernels: add --guest linux-kernel")
    if wanted.cpus > 1 and wanted.guest == "linux-kernel":
        raise MachineError("--cpus is for the teaching kernel and Linux programs; a Linux kernel has one CPU")
    if wanted.patch is not None and (wanted.guest == "linux-kernel" or _wants_linux(wanted)):
        raise MachineError("-x patch is for the teaching kernel, whose static probes are patched")
    if wanted.guest == "linux-kernel":
        return _open_linux_kernel(wanted)
    return _open_linux(wanted) if _wants_linux(wanted) else _open_kernel(wanted)


def _own(command: str, isa: str | None) -> str:
    """Return a command line with the path of a program of the package's own (testbins:NAME)."""
    try:
        return shlex.join(own_program(split(command), ISAS[isa] if isa else None))
    except TargetError as error:
        raise MachineError(str(error)) from None


def _wants_linux(wanted: MachineOptions) -> bool:
    """Return whether the Linux guest is meant: by name, by root, or by a program of this host.

    A path of this host that is not a program also means the Linux guest, which then reports the
    error.
    """
    if wanted.guest is not None:
        return wanted.guest == "linux"
    if wanted.root is not None:
        return True
    words = split(wanted.commands[0]) if wanted.commands else ()
    if not words:
        return False
    return program_isa(words, None) is not None or ("/" in words[0] and _may_be_a_file(words[0]))


def _may_be_a_file(path: str) -> bool:
    """Return whether a path names a file, or an entry of a directory that this user cannot read."""
    try:
        return Path(path).is_file()
    except OSError:
        return True


def _open_linux(wanted: MachineOptions) -> TracedMachine:
    if wanted.pids:
        raise MachineError("-p names a process of the kernel guest; the Linux guest runs the program of -c")
    # The Linux guest takes longer to import than the kernel guest takes to boot, so it is imported only when needed.
    from emu.guest.linux.fs.stdio import of_this_process  # noqa: PLC0415
    from trapline.machine import linux_machine as linux  # noqa: PLC0415

    if not wanted.commands:
        raise MachineError("the Linux guest needs a program: -c 'PROGRAM ARGUMENTS'")
    if len(wanted.commands) > 1:
        raise MachineError("the Linux guest runs one command: join several with a shell, -c 'busybox sh -c \"...\"'")
    machine = linux.start(
        linux.LinuxOptions(
            split(wanted.commands[0]),
            isa=ISAS[wanted.isa] if wanted.isa else None,
            root=Path(wanted.root) if wanted.root else None,
            evaltime=linux.EvalTime(wanted.evaltime),
            fidelity=Fidelity(wanted.fidelity),
            environment=wanted.environment,
            standard=of_this_process(_program_output(wanted), lambda data: _put(sys.stderr, data)),
            report=_report,
            ram=wanted.ram,
            quantum=wanted.quantum,
            cpus=wanted.cpus,
            seed=wanted.seed,
        )
    )
    return TracedMachine(
        machine.guest,
        machine.dtrace,
        lambda: machine.target,
        machine.probes.provide,
        machine.ended,
        lambda: machine.guest.killed,
        foreign=ProcessNames(NoNames(), lambda: machine.probes.objects(machine.target), types_of, _report),
        libraries=("common", "linux", machine.guest.isa.name),
    )


def _program_stream(wanted: MachineOptions) -> TextIO:
    """Return the stream for what the program prints.  Raises `MachineError`."""
    if wanted.program_output is None:
        return sys.stdout
    if wanted.program_output == "stderr":
        return sys.stderr
    try:
        return Path(wanted.program_output).open("w", encoding="utf-8", errors="surrogateescape", newline="")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise MachineError(f"--program-output {wanted.program_output}: {why}") from None


def _program_output(wanted: MachineOptions) -> Callable[[bytes], None]:
    stream = _program_stream(wanted)
    return lambda data: _put(stream, data)


def _put(stream: TextIO, data: bytes) -> None:
    """Write the output of the program, in order with the output of dtrace."""
    stream.flush()
    stream.buffer.write(data)
    stream.flush()


def _open_linux_kernel(wanted: MachineOptions) -> TracedMachine:
    _check_no_quantum(wanted)
    # As with the Linux guest, the modules of this kernel are imported only when needed.
    from emu.guest.linux_kernel.errors import KernelFileError  # noqa: PLC0415
    from trapline.machine import linux_kernel_machine as linux_kernel  # noqa: PLC0415

    console = Console(_program_stream(wanted))
    console.shown = wanted.console
    try:
        machine = linux_kernel.start(
            linux_kernel.LinuxKernelOptions(
                isa=ISAS[wanted.isa or DEFAULT_ISA.name],
                commands=wanted.commands,
                root=Path(wanted.root) if wanted.root else None,
                console=console.write,
                quiet=not wanted.console,
                ram=wanted.ram,
                boot=wanted.boot,
                modules=wanted.load,
                report=_report,
            )
        )
    except KernelFileError as error:
        raise MachineError(str(error)) from None
    console.shown = True
    if wanted.pids:
        machine.programs.grab(wanted.pids[0])
    return TracedMachine(
        machine.guest,
        machine.dtrace,
        lambda: machine.target,
        machine.programs.provide,
        ended=machine.ended,
        foreign=machine.names,
        libraries=("common", "linux-kernel", "linux", machine.guest.isa.name),
    )


def _check_no_quantum(wanted: MachineOptions) -> None:
    if wanted.quantum is not None:
        raise MachineError("-x quantum is for the Linux guest: other guests have their own scheduler")


def _open_kernel(wanted: MachineOptions) -> TracedMachine:
    _check_no_quantum(wanted)
    if wanted.root is not None:
        raise MachineError("--root is for Linux programs; leave --guest kernel out, or --root")
    if wanted.ram is not None:
        raise MachineError("-x ram is for Linux programs: the kernel guest always has the same memory")
    isa = ISAS[wanted.isa or DEFAULT_ISA.name]
    for command in wanted.commands[:1]:
        if is_missing(command, isa):
            raise MachineError(
                f"-c '{command}': no such program, here or in the guest (-c 'ls /bin' lists the guest's)"
            )
    console = Console(_program_stream(wanted))
    console.shown = wanted.console
    options = KernelOptions(
        isa=isa,
        trap_path=TrapPath(wanted.trap),
        fidelity=Fidelity(wanted.fidelity),
        sdt=int(wanted.sdt),
        cpus=wanted.cpus,
        seed=wanted.seed,
        patching=Patching(wanted.patch or Patching.STOP_MACHINE),
        load=wanted.load,
        command="\n".join(wanted.commands) or None,
        environment=(*_ENVIRONMENT, *wanted.environment),
        console=console.write,
    )
    try:
        machine = boot(kernel_guest(options), options.fidelity, report=_report)
    except NoKernelError as error:
        raise MachineError(str(error)) from None
    # Without a command, the trace continues until the program, the user or a timeout ends it.
    machine.guest.waits_for_timers = not wanted.commands and not wanted.pids
    # The output of a command of -c is shown, as dtrace's children write to its terminal; the boot messages are not.
    console.shown = console.shown or bool(wanted.commands)
    libraries = ("common", "kernel", machine.guest.isa.name)
    target = KernelTarget(
        machine.guest, options.command or "", wanted.pids[0] if wanted.pids else None, evaltime=wanted.evaltime
    )
    if wanted.pids:
        target.number()  # grab the process now; a command is started when $target is used
    return TracedMachine(
        machine.guest,
        machine.dtrace,
        target.number,
        machine.probes.provide,
        target.ended,
        foreign=ProcessNames(machine.names, lambda: machine.probes.objects(target.number()), types_of, _report),
        libraries=libraries,
    )


def _report(text: str) -> None:
    sys.stderr.write(f"dtrace: {one_line(text)}\n")


class Console:
    """The guest's console on a stream of the host, while it is `shown`."""

    shown = False

    def __init__(self, stream: Writer) -> None:
        self._stream = stream

    def write(self, text: bytes) -> None:
        """Show the guest's output; bytes that are not UTF-8 are passed on unchanged."""
        if self.shown:
            self._stream.write(text.decode("utf-8", "surrogateescape"))
            self._stream.flush()
