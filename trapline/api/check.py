"""`trapline.check`: a program, plain and probed, compared."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Any

import click

from trapline.api import TraplineError
from trapline.commands.check import options_of, perform
from trapline.lab.check.results import MEMORY, RunResult
from trapline.lab.check.site.compare import SiteResult
from trapline.lab.html_table import Cell, html_table
from trapline.lab.html_table import code as cell
from trapline.lab.objects.findings import ObjectReport
from trapline.lab.objects.glue import Glue
from trapline.lab.objects.report import as_html

Paths = str | Path | Sequence[str | Path]


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
        (True, {'agreed': 2})
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
    given: dict[str, Any] = {
        "asm": asm, "isa": isa, "provider": provider, "function": function, "every_instruction": every_instruction,
        "states": states, "run": run, "root": root, "rules": rules, "fidelity": fidelity, "jobs": jobs,
        "object": object, "glue": glue, "sample": sample, "fuzz": fuzz,
    }  # fmt: skip
    words = [word for name, value in given.items() for word in _words(name, value)]
    words += ["--", *(() if program is None else (str(program),)), *arguments]
    try:
        options = options_of(words)
        if object is None:
            options["kept"] = MEMORY
        else:
            options.update(objects=object if isinstance(object, (str, list, tuple)) else [object], glue=glue)
        done = perform(options, _InThisProcess() if jobs == 1 else None)
    except click.ClickException as error:
        raise TraplineError(error.format_message()) from None
    if done.objects is not None:
        found = done.objects
        return Checked(found.same, dict(found.counts), {}, (), (), 0, done.text, found)
    assert done.tally is not None
    tally = done.tally
    return Checked(
        done.status == 0,
        {outcome.value: count for outcome, count in tally.outcomes.items()},
        dict(tally.refusals),
        tuple(site for _, _, site in tally.trouble),
        tuple(tally.runs),
        tally.states,
        done.text,
    )


def _words(name: str, value: Any) -> list[str]:
    """Return an option of the command with its value; nothing for the default."""
    flag = name.replace("_", "-")
    if value == signature(check).parameters[name].default:
        return []
    if isinstance(value, bool):
        return [f"--{flag}" if value else f"--no-{flag}"]
    return [f"--{flag}", str(value)]
