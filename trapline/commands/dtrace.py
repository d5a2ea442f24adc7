"""The command `trapline dtrace`: dtrace(1), on a machine of ours."""

from __future__ import annotations

import os
import sys

import click

from emu.guest.kernel.guest import TrapPath
from emu.isa import ISAS
from providers.fbt import Fidelity
from trapline.consumer.command import CommandEnvironment, Machine, MachineError, main
from trapline.consumer.output import Writer
from trapline.consumer.usage import MachineOptions
from trapline.machine import KernelOptions, boot, kernel_guest


@click.command(
    "dtrace",
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    short_help="Trace the guest with D: the flags are those of dtrace(1).",
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def dtrace_command(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Trace a guest with D programs; `trapline dtrace --help` lists the flags of dtrace(1)."""
    status = main(arguments, CommandEnvironment(open_machine, sys.stdout, sys.stderr))
    try:
        sys.stdout.flush()
    except OSError:
        # What is left cannot be written; Python would try, and complain, once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    ctx.exit(status)


def open_machine(wanted: MachineOptions) -> Machine:
    """Boot the machine that the flags ask for.  Raises `MachineError`, and `emu.guest.base.GuestError`."""
    if wanted.guest == "linux" or wanted.root is not None:
        raise MachineError("Linux programs cannot be traced yet; leave --guest and --root out for the kernel guest")
    console = Console(sys.stdout)
    console.shown = wanted.console
    options = KernelOptions(
        isa=ISAS[wanted.isa],
        trap_path=TrapPath(wanted.trap),
        fidelity=Fidelity(wanted.fidelity),
        command="\n".join(" ".join(words) for words in wanted.commands) or None,
        console=console.write,
    )
    machine = boot(kernel_guest(options), options.fidelity)
    # What a command of -c prints is shown, as dtrace's children write to its terminal; how the kernel comes up is not.
    console.shown = console.shown or bool(wanted.commands)
    return Machine(machine.guest, machine.dtrace)


class Console:
    """The guest's console on a stream of the host, while it is `shown`."""

    shown = False

    def __init__(self, stream: Writer) -> None:
        self._stream = stream

    def write(self, text: bytes) -> None:
        """Show what the guest prints; what is no UTF-8 goes out as it came in."""
        if self.shown:
            self._stream.write(text.decode("utf-8", "surrogateescape"))
            self._stream.flush()
