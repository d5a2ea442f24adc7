"""The command `trapline check`."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

import click
from click.core import ParameterSource
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from emu.assembly import AssemblyError
from emu.elf.file import ElfError, ElfKind
from emu.guest.kernel.trap_path import TrapPath
from emu.guest.linux.fs.dir import Directory
from emu.guest.linux_kernel.files.kernel_file import KernelFile
from emu.guest.linux_kernel.files.module_file import ModuleFile
from emu.isa import DEFAULT_ISA, ISAS
from emu.isa.disassembly import Syntax
from emu.support.did_you_mean import counted
from providers.fidelity import Fidelity
from providers.uprobes import needs_return_address
from trapline.commands.completion import offering
from trapline.commands.shared import CheckFailure, OutputFile, output_option, print_lines, syntax_option, tui_option
from trapline.framework.base.engines import EngineError
from trapline.lab.check import report
from trapline.lab.check.cpu.rules_under_test import RulesError
from trapline.lab.check.cpu.states import BY_MACHINE_CODE, BY_PYTHON, POOL
from trapline.lab.check.encodings import SWEPT
from trapline.lab.check.encodings.x86_space import DEFAULT_BOUND, MOST_PREFIXES
from trapline.lab.check.results import MEMORY, Results, ResultsError, Tally
from trapline.lab.check.run.guest_runs import RunSpec
from trapline.lab.check.runner.check import check, default_results, describe
from trapline.lab.check.runner.pool import MakeExecutor, WorkersError, local
from trapline.lab.check.runner.unit import EncodingsSpec, Spec
from trapline.lab.check.site.assembly_file import NAME, assembly_file, placed
from trapline.lab.check.site.subject import PROVIDERS, Subject, SubjectError
from trapline.lab.museum.gallery import MuseumError, exhibits, show
from trapline.support.options import debug_root_option
from trapline.support.output_files import OutputError
from trapline.support.own_files import TargetError, is_guest_program
from trapline.support.targets import find_files, find_in, isas_of

if TYPE_CHECKING:
    from trapline.lab.objects.findings import ObjectReport

# Errors in the request itself.
ERRORS: Final = (
    AssemblyError,
    ElfError,
    TargetError,
    SubjectError,
    RulesError,
    ResultsError,
    MuseumError,
    EngineError,
    OutputError,
    WorkersError,
)


@dataclass(frozen=True, slots=True)
class Wanted:
    """The options that select the checks."""

    program: str | None
    arguments: tuple[str, ...]
    isa: str | None
    provider: str | None
    function: str | None
    every_instruction: bool
    states: int | None
    rules: str
    fidelity: str
    run: bool
    root: Path | None
    encodings: str | None
    sample: int | None
    syntax: str = Syntax.INTEL.value
    engine: str | None = None
    asm: str | None = None
    may_be_idle: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> Self:
        """Return those of the command's parameters that select the checks."""
        return cls(**{one.name: options[one.name] for one in fields(cls)})

    @contextmanager
    def with_assembly(self) -> Iterator[Wanted]:
        """Return what is checked when --asm is a file, which is there inside a `with` statement.

        Raises `AssemblyError` and `SubjectError`.
        """
        if self.asm is None:
            yield self
            return
        if self.program is not None or self.encodings is not None:
            raise SubjectError("--asm is the program: PROGRAM and --encodings do not go with it")
        isa = ISAS[self.isa] if self.isa else DEFAULT_ISA
        with assembly_file(isa, self.asm) as path:
            provider = self.provider or "pid"
            yield replace(
                self, program=str(path), isa=isa.name, provider=provider, every_instruction=provider != "fbt",
                function=self.function or NAME, run=False,
            )  # fmt: skip

    def spec(self) -> Spec:
        """Return the specification of the check.  Raises `ElfError` and `SubjectError`."""
        if self.encodings is not None:
            wanted = EncodingsSpec(self.encodings, self.provider or "", self.sample)
            return Spec(rules=self.rules, encodings=(wanted,))
        if self.program is None:
            raise SubjectError("nothing to check: name an ELF file, testbins:kernel, --asm TEXT, or --encodings ISA")
        isas = isas_of(self.program, ISAS[self.isa] if self.isa else None)
        subjects = tuple(
            Subject(path, isa.name if isa else None, self.provider or "", self.function, self.every_instruction)
            for isa in isas
            for path in find_files(self.program, isa, self.root)
        )
        if self.asm is not None:
            subjects = tuple(placed(*subjects))
        runs = tuple(run for subject in subjects for run in self._runs(subject)) if self.run else ()
        return Spec(
            subjects,
            self.states,
            self.rules,
            Fidelity(self.fidelity),
            runs,
            native=None if self.engine is None else self.engine == "native",
            syntax=Syntax(self.syntax),
            omitted=tuple(dict.fromkeys(what for subject in subjects for what in self._omitted(subject))),
        )

    def _runs(self, subject: Subject) -> Iterator[RunSpec]:
        if subject.boots:
            yield from (RunSpec(subject, trap_path=path, may_be_idle=self.may_be_idle) for path in TrapPath)
        elif not self._why_not_run(subject):
            one = RunSpec(subject, self.arguments, self.root, self._in_root(subject), may_be_idle=self.may_be_idle)
            yield one
            if subject.kind == "uprobe":
                yield replace(one, returns=True)

    def _in_root(self, subject: Subject) -> str:
        """Return the path that the guest has for a program, "" if it is not in the root."""
        if self.root is None or not subject.path.is_relative_to(self.root.resolve()):
            return ""
        return f"/{subject.path.relative_to(self.root.resolve())}"

    def _omitted(self, subject: Subject) -> Iterator[str]:
        """Yield the omitted parts that the options request, or that a user could expect."""
        name = subject.path.name
        if subject.kind == "fbt" and self.every_instruction:
            yield "--every-instruction has no effect on fbt, which probes only entries and returns"
        if subject.kind == "fbt" and (self.arguments or self.root):
            yield f"ARGUMENTS and --root have no effect on {name}: it is not a program"
        if self.run and not subject.boots and (why := self._why_not_run(subject)):
            yield f"{name} was not run: {why}"
        elif self.run and subject.kind == "uprobe":
            names = sorted({one.name for one in subject.wanted if needs_return_address(one.name)})
            if names:
                yield f"{name} was run without return probes of {', '.join(names)}: they break on Linux, too"

    def _why_not_run(self, subject: Subject) -> str:
        """Return why a subject cannot be run; "" if it can."""
        image = subject.image
        if is_guest_program(subject.path, subject.isa):
            return "it is a program of the kernel guest (check testbins:kernel instead)"
        if isinstance(image, KernelFile):
            return "a Linux kernel is run by `trapline dtrace --guest linux-kernel`"
        if isinstance(image, ModuleFile):
            return ""
        if subject.kind == "fbt":
            return "a kernel or a module is run only by testbins:kernel"
        if image.kind is ElfKind.RELOCATABLE or not image.entry:
            return "it is not a program"
        if image.interpreter is None:
            return ""
        if self.root is None:
            return f"its interpreter {image.interpreter} is needed: --root DIR names a directory that has it"
        if find_in(Directory(host=self.root.resolve()), image.interpreter) is None:
            return f"its interpreter {image.interpreter} is not in {self.root}"
        return ""


def _glues() -> Iterable[str]:
    from trapline.lab.objects.glues import GLUES  # noqa: PLC0415  few checks have objects

    return GLUES


@click.command("check")
@click.argument("program", required=False)
@click.argument("arguments", nargs=-1)
@click.option(
    "--isa", type=click.Choice(list(ISAS)), help="The ISA; default: that of the file, and for testbins all of them."
)
@click.option(
    "--provider",
    type=click.Choice(PROVIDERS),
    default=None,
    help="The provider whose probes are tried; default: fbt for kernels and modules, else pid.",
)
@click.option("--function", metavar="GLOB", help="Only functions whose names match, such as 'crc32*'.")
@click.option(
    "--every-instruction", is_flag=True, help="Try every instruction, not only the entries and returns of functions."
)
@click.option(
    "--states",
    type=click.IntRange(1, POOL * POOL),
    default=None,
    help="Number of CPU states in which each site is tried; "
    f"default: {BY_MACHINE_CODE}, and {BY_PYTHON} where Python tries them or with --object.",
)
@click.option("--run/--no-run", default=True, show_default=True, help="Also run the whole program, plain and patched.")
@click.option("--allow-idle", "may_be_idle", is_flag=True, help="Accept a run in which no probe fires.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The directory that the program sees as /.",
)
@debug_root_option
@click.option(
    "--rules", default="", metavar="MODULE:OBJECT", help="Check your own patcher or table, instead of the package's."
)
@click.option("--fidelity", type=click.Choice([one.value for one in Fidelity]), default="exact",
              show_default=True, help="Reproduce the bugs of that system; the check then finds them.")  # fmt: skip
@click.option(
    "--engine",
    type=click.Choice(["native", "python"]),
    default=None,
    help="What tries the states: machine code, or only Python; default: machine code if llvmlite is installed.",
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True, help="Worker processes.")
@click.option("--dask", metavar="ADDRESS", help="Use the workers of a Dask cluster, such as tcp://host:8786.")
@click.option(
    "--report",
    "reports",
    multiple=True,
    type=OutputFile(),
    metavar="FILE",
    help="Write a report: .html, .json, .xml (JUnit) or .txt.",
)
@click.option(
    "--results",
    "kept",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Save the results in this SQLite file, and continue from it next time.",
)
@click.option("--encodings", type=click.Choice(SWEPT), help="Check the decode tables of an ISA, encoding by encoding.")
@click.option(
    "--asm",
    metavar="TEXT",
    help="Check assembly instead of PROGRAM, such as 'push rbp; mov rbp, rsp', at several addresses.",
)
@click.option("--sample", type=click.IntRange(1), metavar="N", help="Check a sample of about N encodings.")
@syntax_option
@click.option(
    "--object",
    "objects",
    metavar="FILE,...",
    help="Check your own compiled code: object files, which the glue connects to PROGRAM.",
)
@click.option(
    "--glue",
    metavar="NAME",
    shell_complete=offering(_glues),
    help="What --object is: fasttrap, fbt, illumos-fasttrap, illumos-fbt, linux-kprobes, linux-uprobes, or your own "
    "FILE.py:CLASS.",
)
@click.option("--sweep", is_flag=True, help="With --object: decide about all encodings; --sample N: the next N.")
@click.option(
    "--bound",
    type=click.IntRange(0, MOST_PREFIXES),
    metavar="N",
    help=f"With --sweep of x86: encodings with at most N prefixes, 0 to {MOST_PREFIXES}; default: {DEFAULT_BOUND}.",
)
@click.option("--first", type=click.IntRange(0), default=0, metavar="N", help="With --object: begin at this encoding.")
@click.option(
    "--fuzz",
    type=click.IntRange(0),
    default=0,
    metavar="N",
    help="With --object: also try N made functions or encodings.",
)
@click.option(
    "--bytes", "given", metavar="HEX", help="With --object: try only this instruction, or body of a function."
)
@click.option("--memory/--no-memory", default=True, help="With --object: watch each access to memory (slow).")
@click.option(
    "--museum",
    metavar="NAME",
    shell_complete=offering(lambda: ("list", *exhibits())),
    help="Show a bug of a real probe implementation; 'list' prints the names.",
)
@output_option("--html", "With --museum: write a page that plays the exhibit, wrong beside right")
@tui_option
def check_command(**options: Any) -> None:
    """Check that PROGRAM is the same program when it is probed, or show exactly where it is not.

    Each probe site is tried in many awkward states: the original instruction on one CPU, the
    breakpoint and what replaces the instruction on another; registers, flags, memory, pc and
    faults are compared.  Then the program is run with ARGUMENTS, plain and with all its sites
    patched.

    PROGRAM is an ELF file, a Linux kernel (vmlinuz) or a module of one (.ko, .ko.xz) by its path, a
    program of the --root by its name, linux-kernel for the kernel that `trapline kernel get` has
    fetched, or one of the package's own: testbins:kernel, testbins:user, testbins:zoo, ...

    With --object, your own compiled code replaces the package's rules: docs/objects.md.

    Exit status: 0 if nothing diverged, 1 if something did or no probe fired in a run, 2 if it could
    not be checked, 130 when interrupted; the same command continues where it stopped.
    """
    refuse_idle(click.get_current_context())
    performed = perform(options, progress=sys.stderr.isatty())
    print_lines(performed.lines)
    sys.exit(performed.status)


@dataclass(frozen=True, slots=True)
class Performed:
    """What a check has found."""

    status: int
    """The exit status: 0 if nothing diverged, 1 if something did, 2 if nothing was compared."""
    lines: tuple[Text, ...] = ()
    tally: Tally | None = None
    """The results; None: it was a check of objects, or an exhibit."""
    objects: ObjectReport | None = None

    @property
    def text(self) -> str:
        """The report, as the command prints it."""
        return "".join(f"{line.plain.rstrip()}\n" for line in self.lines)


def options_of(words: Sequence[str]) -> dict[str, Any]:
    """Return the parameters of a `trapline check` by its arguments.  Raises `click.UsageError`."""
    context = check_command.make_context("trapline check", list(words))
    refuse_idle(context)
    return context.params


def perform(options: Mapping[str, Any], executor: Executor | None = None, *, progress: bool = False) -> Performed:
    """Do what the parameters of `trapline check` select: for the command, for pytest, for Python.

    `executor` does the work; None: `jobs` processes, or a Dask cluster's.  `progress`: show it on
    standard error.  Raises `click.ClickException`, and KeyboardInterrupt that says what continues.
    """
    syntax = Syntax(options["syntax"])
    try:
        if options["html"] is not None or options["tui"]:
            # Only the user of a player waits for these modules.
            from trapline.commands.museum import play_exhibit  # noqa: PLC0415

            play_exhibit(options["museum"], options["html"], syntax, tui=options["tui"])
            return Performed(0)
        if options["museum"] is not None:
            told: list[str] = []
            status = show(options["museum"], told.append, syntax)
            return Performed(status, tuple(map(Text, told)))
        if options["objects"] is not None:
            # Only the user of objects waits for these modules.
            from trapline.commands.object import examine  # noqa: PLC0415
            from trapline.lab.objects import report as of_objects  # noqa: PLC0415

            found = examine(options, Bar(shown=bool(options["sweep"]) and progress))
            return Performed(0 if found.same else 1, tuple(of_objects.lines(found)), objects=found)
        for file in options["reports"]:
            report.FORMS.writer(file)
        with Wanted.of(options).with_assembly() as wanted:
            tally = _check(wanted.spec(), options, executor, Bar(shown=progress))
        for file in options["reports"]:
            report.FORMS.write(tally, file)
    except ERRORS as error:
        raise CheckFailure(str(error)) from None
    except OSError as error:
        raise CheckFailure(f"{error.filename}: {(error.strerror or str(error)).lower()}") from None
    status = 2 if tally.empty else 0 if tally.same else 1
    return Performed(status, tuple(report.text.lines(tally)), tally)


def _check(spec: Spec, options: Mapping[str, Any], executor: Executor | None, bar: Bar) -> Tally:
    spec.all_rules()
    jobs, dask, kept = options["jobs"], options["dask"], options["kept"]
    description = describe(spec)
    path = kept or default_results(description)
    with (
        closing(Results(path, description)) as results,
        nullcontext(executor or local(jobs)) if dask is None else dask_workers(dask) as make,
        bar as shown,
    ):
        try:
            tally = check(spec, results=results, executor=make, jobs=jobs, progress=shown)
        except KeyboardInterrupt as end:
            end.args = () if str(path) == MEMORY else (f"the same command continues where this one stopped ({path})",)
            raise
    if kept is None:
        Path(path).unlink(missing_ok=True)
    return tally


@contextmanager
def dask_workers(address: str) -> Iterator[MakeExecutor]:
    """Yield the maker of an executor whose workers are a Dask cluster's; the end disconnects.

    Raises `CheckFailure` without the package, or without a cluster.
    """
    try:
        from distributed import Client  # noqa: PLC0415  a large import, and an optional one
    except ImportError:
        raise CheckFailure("--dask needs the package 'distributed': pip install 'trapline[dask]'") from None
    try:
        client = Client(address, timeout=10)
    except (OSError, ValueError) as error:
        raise CheckFailure(f"no Dask scheduler at {address}: {str(error).splitlines()[0]}") from None
    with client:
        yield client.get_executor


class _Rate(ProgressColumn):
    """Site-states per second."""

    def render(self, task: Task) -> Text:
        """Render the rate, once there is one."""
        return Text(f"{task.speed:,.0f}/s" if task.speed else "", "progress.data.speed")


class Bar:
    """The progress bar: site-states, their rate, and the time left."""

    def __init__(self, *, shown: bool) -> None:
        console = Console(stderr=True)
        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), _Rate(), TimeRemainingColumn())
        self._progress = Progress(*columns, console=console, disable=not shown)
        self._task = self._progress.add_task("checking", total=None)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, total: int, done: int) -> None:
        """Set the amount of work."""
        self._progress.update(self._task, total=total, completed=done)

    def advance(self, states: int) -> None:
        """Add to the finished work."""
        self._progress.advance(self._task, states)

    def runs(self, left: int) -> None:
        """Show that whole runs are in progress, whose length is unknown."""
        self._progress.update(self._task, description=f"{counted(left, 'whole run')} left")


# The mode that no option selects: PROGRAM is checked.
_PROGRAM: Final = ""
_REPORTED: Final = frozenset({"reports", "kept", "jobs", "dask", "rules", "provider"})
_TRIED: Final = frozenset({"isa", "function", "states", "fidelity", "syntax"})
_FILES: Final = frozenset({"program", "root", "debug_root"})
# The option that selects a mode, by its name in Python, and the names of the parameters that have an effect in the
# mode.  If several are given, the first of them counts.
MODES: Final = {
    "museum": frozenset({"museum", "syntax", "html", "tui"}),
    "objects": _TRIED
    | _FILES
    | {"objects", "glue", "sample", "first", "fuzz", "memory", "reports", "sweep", "bound", "given", "kept"},
    "encodings": _REPORTED | {"encodings", "sample"},
    "asm": _REPORTED | _TRIED | {"asm", "engine"},
    _PROGRAM: _REPORTED | _TRIED | _FILES | {"arguments", "every_instruction", "run", "may_be_idle", "engine"},
}


def refuse_idle(context: click.Context) -> None:
    """Raise `click.UsageError` if the command line gives a parameter that has no effect."""
    parameters = {one.name or "": one for one in context.command.params}
    given = {name for name in parameters if context.get_parameter_source(name) is ParameterSource.COMMANDLINE}
    mode = next((mode for mode in MODES if mode in given), _PROGRAM)
    known = frozenset[str]().union(*MODES.values())
    for name, parameter in parameters.items():
        if name not in given & known - MODES[mode]:
            continue
        if mode:
            why = f"with {parameters[mode].opts[0]}"
        else:
            why = "without " + " or ".join(parameters[one].opts[0] for one in MODES if name in MODES[one])
        raise click.UsageError(f"{_written(parameter)} has no effect {why}")


def _written(parameter: click.Parameter) -> str:
    """Return a parameter as the help writes it."""
    return parameter.opts[0] if isinstance(parameter, click.Option) else (parameter.name or "").upper()
