"""`trapline.check`: a program, plain and probed, compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.elf.link.object_file import ObjectFile
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.isa.disassembly import Syntax
from providers.fidelity import Fidelity
from trapline.api import TraplineError
from trapline.commands.check import ERRORS, Wanted
from trapline.commands.object import ERRORS as OBJECT_ERRORS
from trapline.lab.check.report.text import as_text
from trapline.lab.check.results import RunResult
from trapline.lab.check.runner.check import check as run_check
from trapline.lab.check.site.compare import SiteResult
from trapline.lab.check.site.subject import PROVIDERS
from trapline.lab.displace.bench import DisplaceError, isa_of
from trapline.lab.html_table import Cell, html_table
from trapline.lab.html_table import code as cell
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import Glue
from trapline.lab.objects.glues import find
from trapline.lab.objects.report import as_html
from trapline.lab.objects.report import as_text as object_text
from trapline.lab.objects.request import Request
from trapline.support.targets import find_file

Paths = str | Path | Sequence[str | Path]


def check_object(
    objects: Paths, glue: str | type[Glue] | None, program: str | Path | None, *, isa: str | None, function: str | None,
    states: int | None, fidelity: str, sample: int | None, fuzz: int, root: str | Path | None,
) -> ObjectReport:  # fmt: skip
    """Return what a check of objects finds.  Raises `TraplineError`."""
    if glue is None:
        raise TraplineError("object needs glue: a name, 'FILE.py:CLASS', or a class")
    try:
        machine = None if isa is None else isa_of(isa)
        words = objects.split(",") if isinstance(objects, str) else [objects] if isinstance(objects, Path) else objects
        paths = [find_file(str(word), machine) for word in words]
        if not paths:
            raise TraplineError("object names no file")
        machine = machine or ObjectFile(paths[0]).isa
        where = Path(root) if root else None
        image = None if program is None else open_image(find_file(str(program), machine, where), machine)
        request = Request(
            image, function, Fidelity(fidelity), sample=sample or Request.sample, fuzz=fuzz,
            states=Request.states if states is None else states,
        )  # fmt: skip
        chosen = find(glue) if isinstance(glue, str) else glue
        return check_objects(paths, chosen, request, machine)
    except (*OBJECT_ERRORS, DisplaceError) as error:
        raise TraplineError(str(error)) from None


class _InThisProcess(Executor):
    """Does each unit at once: notebooks and scripts are not imported again by other processes."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function, and return what has become of it."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001  the caller of the future sees it
            future.set_exception(error)
        return future


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check."""

    same: bool
    """Whether nothing diverged; also False if nothing could be compared."""
    outcomes: dict[str, int]
    """The numbers of sites that agreed, diverged, were refused ..."""
    refusals: dict[str, int]
    """Rule -> sites that it refuses."""
    trouble: tuple[SiteResult, ...]
    """The sites that diverged, each with the smallest state that shows it."""
    runs: tuple[RunResult, ...]
    """Whole runs of the program, plain and patched."""
    states: int
    """CPU states in which sites were compared."""
    report: str
    """The output of `trapline check`."""
    objects: ObjectReport | None = None
    """What a check of the user's own object files has found; None: it was another check."""

    def __str__(self) -> str:
        return self.report

    def _repr_html_(self) -> str:
        if self.objects is not None:
            return as_html(self.objects)
        counts = [(Cell((name,)), cell(f"{count:,}")) for name, count in self.outcomes.items()]
        bad = [
            (
                cell(one.site.name),
                Cell((one.why,)),
                Cell(tuple(str(each) for way in one.divergences for each in way.differences)),
            )
            for one in self.trouble
        ]
        table = html_table(("outcome", "sites"), counts, "the same" if self.same else "NOT the same")
        return table + (html_table(("site", "displaced", "differences"), bad) if bad else "")


def check(
    program: str | Path | None = None,
    *,
    asm: str | None = None,
    isa: str | None = None,
    provider: str | None = None,
    function: str | None = None,
    every_instruction: bool = False,
    states: int | None = None,
    run: bool = True,
    arguments: Sequence[str] = (),
    root: str | Path | None = None,
    rules: str = "",
    fidelity: str = "exact",
    jobs: int = 1,
    object: Paths | None = None,  # noqa: A002  the name of the option
    glue: str | type[Glue] | None = None,
    sample: int | None = None,
    fuzz: int = 0,
) -> Checked:
    """Check that a program is the same program when it is probed.

        >>> checked = trapline.check(asm="push rbp; mov rbp, rsp", states=4)
        >>> checked.same, checked.outcomes
        (True, {'agreed': 20})
        >>> trapline.check("testbins:zoo", function="fib", isa="riscv64", states=2, run=False).same
        True

    `program` is an ELF file, testbins:kernel, or a program of `root`; or `asm` is assembly.
    `provider` is fbt, pid or uprobe.  Each site is tried in `states` awkward states of the CPU
    (None: 320 where machine code tries them, else 20): entries and returns of functions, or every
    instruction.  With `run`, the whole program is run with `arguments`, plain and patched.  `rules`
    is "module:object": a patcher or table of your own.  With more than one of `jobs`, other
    processes do the work: a script that is not a module then needs `if __name__ == "__main__":`.
    Raises `TraplineError`.

    With `object`, your own compiled code replaces the package's rules (docs/objects.md):
    files, and the `glue` that connects them to `program`, a name or a class.  `outcomes` has the
    numbers of what was examined, and `objects` the findings.  Without a program, `sample` encodings
    are tried; `fuzz` function bodies are made.

        >>> found = trapline.check("testbins:kernel", object="testbins:scanner.o", glue="fbt",
        ...                        isa="riscv64", function="sys_access")
        >>> found.same, found.outcomes["functions"]
        (True, 1)
    """
    if provider is not None and provider not in PROVIDERS:
        raise TraplineError(f"'{provider}' is not a provider that is checked: there are {', '.join(PROVIDERS)}")
    if fidelity not in {one.value for one in Fidelity}:
        raise TraplineError(f"'{fidelity}' is not a fidelity: there are {', '.join(one.value for one in Fidelity)}")
    if object is not None:
        found = check_object(
            object, glue, program, isa=isa, function=function, states=states, fidelity=fidelity, sample=sample,
            fuzz=fuzz, root=root,
        )  # fmt: skip
        return Checked(found.same, dict(found.counts), {}, (), (), 0, object_text(found), found)
    if glue is not None:
        raise TraplineError("glue has no effect without object")
    wanted = Wanted(
        None if program is None else str(program), tuple(arguments), isa, provider, function, every_instruction, states,
        rules, fidelity, run, Path(root) if root else None, None, None, Syntax.INTEL.value, None, asm,
    )  # fmt: skip
    try:
        if isa is not None:
            isa_of(isa)
        with wanted.with_assembly() as complete:
            tally = run_check(complete.spec(), executor=_InThisProcess() if jobs == 1 else None, jobs=jobs)
    except (*ERRORS, DisplaceError) as error:
        raise TraplineError(str(error)) from None
    return Checked(
        tally.same and not tally.empty,
        {outcome.value: count for outcome, count in tally.outcomes.items()},
        dict(tally.refusals),
        tuple(site for _, _, site in tally.trouble),
        tuple(tally.runs),
        tally.states,
        as_text(tally),
    )
