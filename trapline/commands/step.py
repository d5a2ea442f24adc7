"""The command `trapline step`."""

from __future__ import annotations

import click

from emu.disassembly import Syntax
from emu.guest.base import GuestError
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import DEFAULT_ISA, ISAS, Isa
from trapline.commands.shared import print_lines, syntax_option
from trapline.d.errors import CompileError
from trapline.lab import step_report
from trapline.lab.stages import StepError
from trapline.lab.step import Stepped, step
from trapline.machine.kernel_machine import KernelOptions


@click.command("step")
@click.option("-n", "clause", required=True, metavar="CLAUSE", help="A probe, such as 'fbt::malloc:entry /arg0 > 64/'.")
@click.option("-c", "command", metavar="CMD", help="Run CMD in the guest's shell instead of its start-up script.")
@click.option(
    "--guest",
    type=click.Choice(["kernel", "linux-kernel"]),
    default="kernel",
    show_default=True,
    help="The teaching kernel, or a Linux kernel that `trapline kernel get` has fetched.",
)
@click.option("--isa", type=click.Choice(list(ISAS)), default=DEFAULT_ISA.name, show_default=True)
@click.option("--trap", type=click.Choice([path.value for path in TrapPath]), default="host", show_default=True)
@syntax_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def step_command(
    clause: str, command: str | None, guest: str, isa: str, trap: str, syntax: str, *, as_json: bool
) -> None:
    """Run a kernel to the first firing of a probe, and show it stage by stage.

    \b
    trapline step -n 'fbt::malloc:entry'
    trapline step -n 'fbt::sys_read:return /execname == "cat"/' --isa aarch64 --trap guest
    trapline step --guest linux-kernel -n 'fbt::do_sys_openat2:entry' -c 'cat /etc/passwd'
    """  # noqa: D301  (click reads the backspace: lines as they are)
    try:
        if guest == "linux-kernel":
            stepped = _step_linux_kernel(clause, command, ISAS[isa], TrapPath(trap), Syntax(syntax))
        else:
            options = KernelOptions(isa=ISAS[isa], trap_path=TrapPath(trap), command=command)
            stepped = step(clause, options, Syntax(syntax))
    except CompileError as error:
        raise click.ClickException(error.text(errtags=False)) from None
    except (StepError, GuestError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(step_report.as_json(stepped))
        return
    print_lines(step_report.text(stepped))


def _step_linux_kernel(clause: str, command: str | None, isa: Isa, trap: TrapPath, syntax: Syntax) -> Stepped:
    if trap is TrapPath.GUEST:
        raise click.ClickException("--trap guest: a Linux kernel has no handlers of DTrace's; leave it out")
    # The modules of this kernel are imported only when needed.
    from emu.guest.linux_kernel.errors import KernelFileError  # noqa: PLC0415
    from trapline.lab.linux_kernel_step import step_linux_kernel  # noqa: PLC0415
    from trapline.machine.linux_kernel_machine import LinuxKernelOptions  # noqa: PLC0415

    try:
        return step_linux_kernel(clause, LinuxKernelOptions(isa, (command,) if command else ()), syntax)
    except KernelFileError as error:
        raise click.ClickException(str(error)) from None
