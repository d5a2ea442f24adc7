"""The command `trapline bench`."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from emu.guest.base import GuestError
from emu.isa import DEFAULT_ISA, ISAS, Isa
from trapline.commands.completion import offering
from trapline.commands.shared import (
    OutputFailure,
    json_option,
    lines_option,
    output_option,
    print_lines,
    write,
    write_json,
    write_lines,
)
from trapline.consumer.errors import ConsumerError
from trapline.cost import mechanisms, report, tables
from trapline.cost.models import CostModel, ModelError, chosen
from trapline.cost.program import profile
from trapline.cost.rows import Row
from trapline.cost.tables import Table
from trapline.d.errors import CompileError
from trapline.machine.linux_machine import LinuxOptions
from trapline.support.output_files import OutputError, prepare_folder
from trapline.support.own_files import TargetError, own_program

ALL = "all"
FILE = click.Path(dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


@click.command("bench", context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--isa",
    metavar="ISA,...",
    default=ALL,
    show_default=True,
    shell_complete=offering(lambda: ISAS),
    help=f"Of {', '.join(ISAS)}.",
)
@click.option(
    "--mechanism",
    metavar="NAME,...",
    shell_complete=offering(lambda: mechanisms.MECHANISMS),
    help=f"Of {', '.join(mechanisms.MECHANISMS)}; default: all.",
)
@click.option(
    "--model",
    metavar="NAME,...",
    shell_complete=offering(lambda: [one.name for one in chosen(())]),
    help="Real machines (--models lists them); default: all.",
)
@click.option("--hz", type=float, help="Another clock for the models, in hertz, where theirs was published.")
@click.option("--models", "listed", is_flag=True, help="Show the models: prices, sources, predicted beside published.")
@click.option("--program", metavar="'PROGRAM ARG...'", help="Predict what probes would cost this Linux program.")
@click.option("--probes", metavar="DESCRIPTION", multiple=True, help="The probes for --program; default: all entries.")
@click.option("--root", type=click.Path(exists=True, file_okay=False, path_type=Path), help="The program's /.")
@click.option("--host", is_flag=True, help="Measure breakpoints and uprobes of this host instead.")
@click.option("--peers", is_flag=True, help="Measure other tools on this host instead, those that are installed.")
@click.option("--compare", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="An earlier --json.")
@click.option("--threshold", type=float, default=5.0, show_default=True, help="Percent that --compare lets pass.")
@output_option("--html", "Write a page with all tables and plots, which needs no network")
@click.option("--plots", type=FOLDER, help="Write the plots to this folder, as SVG and PNG, light and dark.")
@json_option
@lines_option("row")
def bench_command(
    isa: str,
    mechanism: str | None,
    model: str | None,
    program: str | None,
    probes: tuple[str, ...],
    root: Path | None,
    compare: Path | None,
    **others: Any,
) -> None:
    """Count what a probe costs, by mechanism and ISA, and predict it for real machines.

    Exit status: 0; 1 if --compare finds a cost that has grown; 2 for a mistake in the question.
    """
    try:
        models = chosen(_words(model), others["hz"])
        if not others["threshold"] >= 0:
            raise click.UsageError(f"--threshold {others['threshold']:g}: a share in percent, 0 or more")
        if others["plots"]:
            _prepare(others["plots"])
        if compare is not None:
            report.compared(compare, (), 0)  # a file that cannot be compared is refused before the work
        if others["listed"]:
            _models(models, others["json_file"])
        elif program is not None:
            _program(program, probes, _one_isa(isa), root, models, others["json_file"])
        elif (others["host"] or others["peers"]) and not others["html"]:
            _here(
                _isas(isa),
                host=others["host"],
                peers=others["peers"],
                lines_file=others["lines_file"] or others["json_file"],
            )
        else:
            isas = _isas(isa)
            rows = _measured(isas, _mechanisms(mechanism))
            if others["json_file"]:
                write_json(others["json_file"], report.data(rows, models))
            if others["lines_file"]:
                write_lines(others["lines_file"], (report.row_data(row, models) for row in rows))
            if compare is None and not others["json_file"] and not others["lines_file"]:
                print_lines(report.table(rows, models))
                print_lines(report.without_times(models if model else [], rows))
            if others["html"] or others["plots"]:
                more = [table for table, _ in _on_host(isas, host=others["host"], peers=others["peers"])]
                _drawn(isas, rows, models, others["html"], others["plots"], more)
            if compare is not None:
                _compare(compare, rows, others["threshold"] / 100)
    except (ModelError, report.ComparisonError, TargetError) as error:
        raise click.UsageError(str(error)) from None


def _prepare(folder: Path) -> None:
    """Refuse a folder of plots that cannot be written, before anything is measured."""
    from trapline.cost import plots  # noqa: PLC0415  only the user of plots waits for them

    try:
        plots.check()
        prepare_folder(folder if folder.exists() else folder.parent, folder)
    except (plots.PlotError, OutputError) as error:
        raise OutputFailure(str(error)) from None


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()] if text else []


def _isas(text: str) -> list[Isa]:
    names = list(ISAS) if text == ALL else _words(text)
    for name in names:
        if name not in ISAS:
            raise click.UsageError(f"--isa {name}: choose from {ALL}, {', '.join(ISAS)}")
    return [ISAS[name] for name in names]


def _one_isa(text: str) -> Isa | None:
    isas = _isas(text)
    if text != ALL and len(isas) != 1:
        raise click.UsageError("--program: a program is of one ISA; name one, or none to take the program's")
    return None if text == ALL else isas[0]


def _mechanisms(text: str | None) -> list[str]:
    wanted = _words(text) or list(mechanisms.MECHANISMS)
    for name in wanted:
        if name not in mechanisms.MECHANISMS:
            raise click.UsageError(f"--mechanism {name}: choose from {', '.join(mechanisms.MECHANISMS)}")
    return wanted


def _measured(isas: list[Isa], wanted: list[str]) -> list[Row]:
    with _progress() as progress:
        task = progress.add_task("measuring ISAs", total=len(isas))
        return mechanisms.measure_all(isas, wanted, lambda: progress.advance(task))


def _progress() -> Progress:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _on_host(isas: list[Isa], *, host: bool, peers: bool) -> Iterator[tuple[Table, list[dict[str, Any]]]]:
    """Yield the tables of what is measured on this host, and the same as data."""
    from trapline.cost.host import peers as other_tools  # noqa: PLC0415
    from trapline.cost.host import probes as this_host  # noqa: PLC0415  only their users wait for them

    if host:
        try:
            figures, left_out = this_host.measure()
        except this_host.HostError as error:
            raise click.ClickException(str(error)) from None
        yield this_host.table(figures, left_out), [one.data() for one in figures]
    if peers:
        found, not_run = other_tools.measure(isas)
        yield other_tools.table(found, not_run), [one._asdict() for one in found]


def _here(isas: list[Isa], *, host: bool, peers: bool, lines_file: str | None) -> None:
    rows: list[dict[str, Any]] = []
    for index, (table, data) in enumerate(_on_host(isas, host=host, peers=peers)):
        if lines_file is not None:
            rows += data
            for note in table.notes:
                click.echo(note, err=True)
            continue
        if index:
            click.echo()
        click.echo(table.title)
        print_lines(tables.lines(table))
    if lines_file is not None:
        write_lines(lines_file, rows)


def _drawn(
    isas: list[Isa],
    rows: list[Row],
    models: list[CostModel],
    html: str | None,
    folder: Path | None,
    more: list[Table],
) -> None:
    """Measure the curves, draw the plots, and write the page."""
    from trapline.cost import plots  # noqa: PLC0415  only the user of plots waits for them
    from trapline.cost.page import page  # noqa: PLC0415  and of a page for jinja2
    from trapline.cost.scale import measure_curves  # noqa: PLC0415

    drawn, without = [], ""
    try:
        plots.check()
        with _progress() as progress:
            task = progress.add_task("measuring curves", total=len(isas))
            curves = measure_curves(isas, lambda: progress.advance(task))
        drawn = plots.draw(rows, curves, models)
    except plots.PlotError as error:
        if html is None:
            raise click.ClickException(str(error)) from None
        without = f"There are no plots: {error}."
        click.echo(without, err=True)
    try:
        if folder is not None and drawn:
            plots.save(drawn, folder)
            click.echo(f"{folder}: {len(drawn)} plots, each as {' and '.join(plots.FORMATS)}", err=True)
        if html is not None:
            write(html, page(rows, models, drawn, plotless=without, more=more))
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None


def _models(models: list[CostModel], json_file: str | None) -> None:
    if json_file is not None:
        write_json(json_file, report.models_data(models))
    else:
        print_lines(report.checks(models))


def _program(
    text: str,
    probes: tuple[str, ...],
    isa: Isa | None,
    root: Path | None,
    models: list[CostModel],
    json_file: str | None,
) -> None:
    try:
        words = own_program(tuple(shlex.split(text)), isa or DEFAULT_ISA)
    except ValueError as error:
        raise click.UsageError(f"--program: {error}") from None
    if not words:
        raise click.UsageError("--program: the program is missing")
    try:
        found = profile(LinuxOptions(words, isa=isa, root=root), probes or ("pid$target:::entry",))
    except (GuestError, CompileError, ConsumerError) as error:
        raise click.ClickException(str(error)) from None
    if json_file is not None:
        write_json(json_file, report.program_data(found, models))
    else:
        print_lines(report.program_lines(found, models))


def _compare(path: Path, rows: list[Row], threshold: float) -> None:
    found = report.compared(path, rows, threshold)
    if not found.rows:
        raise report.ComparisonError(f"{path}: it has none of these rows")
    for what in found.left_out:
        click.echo(f"not compared: {what}", err=True)
    for change in found.grown:
        click.echo(
            f"{change.row}: {change.what} {change.before:g} became {change.after:g} ({change.ratio - 1:+.0%})", err=True
        )
    if found.grown:
        sys.exit(1)
    click.echo(f"no cost of {found.rows} rows of {path} has grown by more than {threshold:.0%}", err=True)
