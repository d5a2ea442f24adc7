"""The command `trapline kldstat`."""

from __future__ import annotations

import re
import sys

import click

from emu.guest.base import GuestError
from emu.isa import DEFAULT_ISA, ISAS
from trapline.machine.kernel_machine import KernelOptions, kernel_guest

_NAME = re.compile(r"[\w./-]+")
_MARK = "-- loaded --"


@click.command("kldstat")
@click.argument("modules", nargs=-1, metavar="[MODULE]...")
@click.option("-v", "verbose", is_flag=True, help="Show the path of each file, and the modules in it.")
@click.option("--isa", type=click.Choice(list(ISAS)), default=DEFAULT_ISA.name, show_default=True)
def kldstat_command(modules: tuple[str, ...], isa: str, *, verbose: bool) -> None:
    """Show the modules of the kernel guest while it is traced, and what loading each MODULE adds.

    \b
    trapline kldstat
    trapline kldstat -v sumcall --isa riscv64
    """  # noqa: D301  (click reads the backspace: lines as they are)
    for name in modules:
        if not _NAME.fullmatch(name):
            raise click.UsageError(f"'{name}' cannot be the name of a module")
    # The kernel's messages at its start are omitted: the output begins with the guest's own line.
    shown = bytearray()
    loads = "".join(f"kldload {name}\n" for name in modules)
    command = f"{loads}echo {_MARK}\nkldstat{' -v' * verbose}"
    guest = kernel_guest(KernelOptions(isa=ISAS[isa], command=command, console=shown.extend))
    try:
        guest.boot()
        guest.run(None)
    except GuestError as error:
        raise click.ClickException(str(error)) from None
    before, _, listing = shown.decode(errors="replace").partition(f"{_MARK}\n")
    click.echo(listing, nl=False)
    complaints = [line for line in before.splitlines() if line.startswith("kldload: ")]
    for line in complaints:
        click.echo(line, err=True)
    if complaints:
        sys.exit(1)
