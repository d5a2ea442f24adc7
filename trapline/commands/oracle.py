"""The command `trapline oracle`: Trapline's breakpoints beside a Linux kernel's own kprobes."""

from __future__ import annotations

import click

from emu.guest.base import GuestError
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from trapline.lab import oracle


@click.command("oracle")
@click.option("--isa", type=click.Choice(list(BOARDS)), required=True)
@click.option("-f", "--function", "functions", multiple=True, help="A function of the kernel (default: a few).")
@click.option("-c", "workload", default=oracle.WORKLOAD, help="The commands that the guest's shell runs.")
def oracle_command(isa: str, functions: tuple[str, ...], workload: str) -> None:
    """Compare our breakpoints with a kernel's own kprobes, in the same boot, hit by hit.

    Exit status 1: they differ.  Uprobes and return probes are not compared.
    """
    try:
        rows = oracle.compare(ISAS[isa], functions or oracle.FUNCTIONS, workload)
    except KernelFileError as error:
        raise click.ClickException(str(error)) from None
    except GuestError as error:
        raise click.ClickException(error.report()) from None
    click.echo(f"{'function':24} {'ours':>8} {'kprobe':>8} {'missed':>7} {'records':>8}  arguments")
    for row in rows:
        kernel = "refused" if row.kernel is None else str(row.kernel)
        arguments = "not recorded" if not row.recorded else "equal" if row.same_arguments else "DIFFER"
        mark = "" if row.agrees else "  <- differs"
        click.echo(f"{row.function:24} {row.ours:8} {kernel:>8} {row.missed:7} {row.recorded:8}  {arguments}{mark}")
    left_out = [name for name in functions or oracle.FUNCTIONS if name not in {row.function for row in rows}]
    if left_out:
        click.echo(f"left out, without an entry probe or with a branch displaced: {', '.join(left_out)}", err=True)
    raise SystemExit(0 if all(row.agrees for row in rows) else 1)
