"""The command `trapline oracle`: Trapline's breakpoints beside a Linux kernel's own kprobes."""

from __future__ import annotations

import click

from emu.guest.base import GuestError
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS
from trapline.lab import oracle, oracle_refusals


def _refusals(isa: str) -> int:
    """Print what both refuse; return the exit status."""
    verdicts = oracle_refusals.refusals(ISAS[isa])
    click.echo(f"{'places':>8}  {'kind':7} {'Trapline':28} kernel")
    for one in verdicts:
        mark = "" if one.agrees else f"  <- differs, such as {one.example}"
        click.echo(f"{one.count:8,}  {one.kind:7} {one.ours:28} {one.kernel}{mark}")
    return 0 if all(one.agrees for one in verdicts) else 1


@click.command("oracle")
@click.option("--isa", type=click.Choice(list(BOARDS)), required=True)
@click.option("-f", "--function", "functions", multiple=True, help="A function of the kernel (default: a few).")
@click.option("-c", "workload", default=oracle.WORKLOAD, help="The commands that the guest's shell runs.")
@click.option("--refusals", is_flag=True, help="Compare the places where kprobes and uprobes are refused.")
def oracle_command(isa: str, functions: tuple[str, ...], workload: str, *, refusals: bool) -> None:
    """Compare our breakpoints with a kernel's own kprobes, in the same boot, hit by hit.

    With --refusals, the kernel is asked at some thousand places whether it allows a kprobe or a
    uprobe there, and the answers are compared with Trapline's.

    Exit status 1: they differ.
    """
    try:
        if refusals:
            raise SystemExit(_refusals(isa))
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
