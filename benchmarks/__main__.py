"""Run the benchmarks: python -m benchmarks [NAME...] [--isa ISA...] [--smallest] [--save].

Each prints a table; with --save the figures are also written to benchmarks/results/NAME.json, and
into benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks import (
    boot,
    check_speed,
    firing,
    interpreters,
    kernels,
    language,
    linux,
    linux_speed,
    models,
    object_sweep,
    oracle,
    prose,
    race,
    rewriters,
    sdt,
    speed,
    startup,
)
from benchmarks.figures import Figures, Scale
from benchmarks.ongoing import RESULTS
from emu.isa import ISAS, Isa

# Name -> (ISAs, scale) -> figures.
BENCHMARKS: dict[str, Callable[[Sequence[Isa], Scale], Figures]] = {
    "boot": boot.measure,
    "check_speed": check_speed.measure,
    "firing": firing.measure,
    "interpreters": interpreters.measure,
    "kernels": kernels.measure,
    "language": language.measure,
    "linux": linux.measure,
    "linux_speed": linux_speed.measure,
    "models": models.measure,
    "object_sweep": object_sweep.measure,
    "oracle": oracle.measure,
    "race": race.measure,
    "rewriters": rewriters.measure,
    "sdt": sdt.measure,
    "speed": speed.measure,
    "startup": startup.measure,
}

# Columns of a table that is not printed to a terminal.
_FILE_WIDTH = 200


def show(figures: Figures) -> None:
    """Print a table."""
    table = Table(title=figures.title, title_justify="left")
    for column in figures.columns:
        table.add_column(column, justify="left" if column in figures.text_columns else "right")
    for row in figures.rows:
        table.add_row(*(f"{cell:,.2f}" if isinstance(cell, float) else escape(str(cell)) for cell in row))
    console = Console(width=None if sys.stdout.isatty() else _FILE_WIDTH)
    console.print(table)
    console.print(figures.note)


def main() -> int:
    """Run the benchmarks of the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Run the benchmarks.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}; all by default")
    parser.add_argument("--save", action="store_true", help="write benchmarks/results/NAME.json")
    parser.add_argument("--isa", choices=list(ISAS), action="append", help="of these ISAs only; all by default")
    parser.add_argument("--smallest", action="store_true", help="run the smallest workload of each benchmark")
    arguments = parser.parse_args()
    if arguments.save and (arguments.isa or arguments.smallest):
        parser.error("--save is for whole results: leave out --isa and --smallest")
    isas = [ISAS[name] for name in arguments.isa or ISAS]
    unknown = sorted(set(arguments.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: the benchmarks are {', '.join(BENCHMARKS)}")
    for name in arguments.names or BENCHMARKS:
        figures = BENCHMARKS[name](isas, Scale(arguments.smallest))
        if figures.rows:
            show(figures)
        for reason in figures.left_out:
            print(f"{name}: left out: {reason}", file=sys.stderr)
        if arguments.save and figures.rows:
            figures.save(RESULTS / f"{name}.json")
            prose.write()
    return 0


if __name__ == "__main__":
    sys.exit(main())
