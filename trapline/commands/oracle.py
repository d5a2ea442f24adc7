"""The command `trapline oracle`: Trapline's probes beside a Linux kernel's own."""

from __future__ import annotations

import click

from emu.guest.base import GuestError
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.isa import ISAS, Isa
from trapline.commands.shared import say
from trapline.lab.oracle import kprobes, uprobes
from trapline.lab.oracle import refusals as oracle_refusals
from trapline.lab.oracle.rows import Row

# The longest difference that is shown, in characters.
_SHOWN = 300


def _refusals(isa: str) -> int:
    """Print what both refuse; return the exit status."""
    verdicts = oracle_refusals.refusals(ISAS[isa])
    say(f"{'places':>8}  {'kind':7} {'Trapline':28} kernel")
    for one in verdicts:
        mark = "" if one.agrees else f"  <- differs, such as {one.example}"
        say(f"{one.count:8,}  {one.kind:7} {one.ours:28} {one.kernel}{mark}")
    return 0 if all(one.agrees for one in verdicts) else 1


@click.command("oracle")
@click.option("--isa", type=click.Choice(list(BOARDS)), required=True)
@click.option("-f", "--function", "functions", multiple=True, help="Only kprobes at this function of the kernel.")
@click.option("-c", "workload", default=kprobes.WORKLOAD, help="The commands that run with the kernel's probes.")
@click.option("--refusals", is_flag=True, help="Compare the places where kprobes and uprobes are refused.")
def oracle_command(isa: str, functions: tuple[str, ...], workload: str, *, refusals: bool) -> None:
    """Compare Trapline's probes with a kernel's own, in the same boot, hit by hit.

    These are kprobes, kretprobes, uprobes and uretprobes, with the values that both
    read: registers, the stack, memory and strings.

    With --refusals, the kernel is asked at some thousand places whether it allows a kprobe or a
    uprobe there, and the answers are compared with Trapline's.

    Exit status 1: they differ.
    """
    try:
        if refusals:
            raise SystemExit(_refusals(isa))
        rows = kprobes.compare(ISAS[isa], functions or tuple(kprobes.FUNCTIONS), workload)
        if not functions:
            rows += _others(ISAS[isa], workload)
    except KernelFileError as error:
        raise click.ClickException(str(error)) from None
    except GuestError as error:
        raise click.ClickException(error.report()) from None
    _show(rows)
    left_out = [name for name in functions or kprobes.FUNCTIONS if name not in {row.function for row in rows}]
    if left_out:
        say(f"left out, without an entry probe or with a branch displaced: {', '.join(left_out)}", err=True)
    raise SystemExit(0 if all(row.agrees for row in rows) else 1)


def _others(isa: Isa, workload: str) -> list[Row]:
    return [
        *kprobes.compare_returns(isa, workload=workload),
        *uprobes.compare_programs(isa),
        *uprobes.compare_program_returns(isa),
    ]


def _show(rows: list[Row]) -> None:
    head = ("function", "probe", "ours", "kernel", "missed", "records", "values")
    say("{:24} {:9} {:>7} {:>7} {:>7} {:>7} {:>7}".format(*head))
    for row in rows:
        kernel = "refused" if row.kernel is None else str(row.kernel)
        values = "equal" if row.same_values else "DIFFER"
        if not row.recorded:
            values = "not recorded" if row.kernel else ""
        mark = "" if row.agrees else "  <- differs"
        line = f"{row.function:24} {row.kind:9} {row.ours:7} {kernel:>7} {row.missed:7} {row.recorded:7} {row.values:7}"
        say(f"{line}  {values}{mark}".rstrip())
        if row.difference:
            say(f"    the kernel alone has: {row.difference[:_SHOWN]}")
