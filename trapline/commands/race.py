"""The command `trapline race`: patching and executing, in every order."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import click

from emu.elf.file import ElfError
from emu.isa import ISAS, Isa
from trapline.commands.completion import offering
from trapline.commands.shared import json_option, output_option, say, write, write_json
from trapline.lab.race.methods import METHODS, OURS, SCENARIOS, USUAL, Own
from trapline.lab.race.model import Model, Race, erratum_of
from trapline.lab.race.objects.method import GLUES, glue_of, own_method
from trapline.lab.race.patch import NoPortError, Patch, RaceError
from trapline.lab.race.probe_names import find
from trapline.lab.race.report import as_data, lines, player_data, told, verdict
from trapline.lab.race.search import BOUND, MODELLED, NOT_MODELLED, Explored, explore, replay
from trapline.lab.race.state import Move
from trapline.player.page import race_page

_ALL: Final = "all"
_GLUE: Final = "text-poke"
# The patch that is explored if only a method is named.
_EXAMPLE: Final = "fbt::malloc:entry"
_ERRATA: Final = {name: one for isa in ISAS.values() for name, one in isa.fetching.errata.items()}


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The options that select patches and methods."""

    patch: str | None
    isa: str
    methods: tuple[str, ...]
    objects: str | None
    glue: str | None
    entry: str | None
    handler: str | None
    erratum: str | None

    def methods_of_patches(self) -> Iterator[tuple[Patch, str, Own | None]]:
        """Yield each patch with each method.

        Raises `click.UsageError`, `RaceError` and `ElfError`.
        """
        self._check()
        for name in ISAS if self.isa == _ALL else [self.isa]:
            try:
                patch, own = self._patch(ISAS[name])
            except NoPortError as error:
                if self.isa != _ALL:
                    raise
                say(f"trapline: {error}: left out", err=True)
                continue
            for method in [own.name] if own else self._methods(patch.provider):
                yield patch, method, own

    def _check(self) -> None:
        if self.objects is not None and self.methods:
            raise click.UsageError("--object and --method are mutually exclusive")
        if self.objects is None and (self.glue or self.entry or self.handler):
            raise click.UsageError("--glue, --entry and --handler are for --object")
        if self.objects is None and self.patch is None:
            if not self.methods:
                raise click.UsageError(f"name a patch with --patch, such as {_EXAMPLE}")
            click.echo(f"trapline: without --patch, {_EXAMPLE} is explored", err=True)

    def _patch(self, isa: Isa) -> tuple[Patch, Own | None]:
        if self.erratum is not None:
            erratum_of(isa, self.erratum)
        if self.objects is None:
            return find(isa, self.patch or _EXAMPLE), None
        glue = self.glue or _GLUE
        patch = find(isa, self.patch or glue_of(glue).usual_patch(isa))
        return patch, own_method(patch, self.objects, glue, self.entry or "", self.handler or "")

    def _methods(self, provider: str) -> list[str]:
        if _ALL in self.methods:
            return list(METHODS)
        return list(dict.fromkeys(self.methods or (USUAL.get(provider, OURS), OURS)))


@click.command("race")
@click.option(
    "--patch",
    "patch_name",
    metavar="PROBE",
    help="The patch: provider:FILE:function:name, such as fbt::malloc:entry or uprobe:./prog:main:0; "
    f"with --method alone: {_EXAMPLE}.",
)
@click.option(
    "--isa",
    "isa_name",
    type=click.Choice([*ISAS, _ALL]),
    default=_ALL,
    show_default=True,
    help="The ISA, or all of them.",
)
@click.option(
    "--method",
    "methods",
    type=click.Choice([*METHODS, _ALL]),
    multiple=True,
    help="How the patch is written (may be repeated); default: as the provider's system does, and as we do.",
)
@click.option(
    "--object",
    "objects",
    metavar="FILE[,FILE]",
    help="Explore your own compiled patcher: object files, which the glue connects to their kernel.",
)
@click.option(
    "--glue",
    metavar="NAME",
    shell_complete=offering(lambda: GLUES),
    help=f"What --object is: {', '.join(GLUES)}, or FILE.py:CLASS of your own; default: text-poke.",
)
@click.option("--entry", metavar="FUNCTION", help="With --object: the function that patches, if there are several.")
@click.option(
    "--handler", metavar="FUNCTION", help="With --object: the function that handles breakpoints, if not a known one."
)
@click.option(
    "--scenario",
    type=click.Choice(list(SCENARIOS)),
    default=Race.scenario,
    show_default=True,
    help="What is done with the probe.",
)
@click.option(
    "--cpus",
    type=click.IntRange(1, 4),
    default=Race.cpus,
    show_default=True,
    help="CPUs: one that patches, the others execute; 1 with --scenario self.",
)
@click.option(
    "--passes",
    type=click.IntRange(1, 4),
    default=Race.passes,
    show_default=True,
    help="How often each of those executes the code.",
)
@click.option("--coherent", is_flag=True, help="No CPU keeps old bytes: which failures are left?")
@click.option(
    "--erratum",
    type=click.Choice(list(_ERRATA)),
    help="A bug of the CPU that patches (see --list); for --scenario self.",
)
@click.option("--bound", type=click.IntRange(1), default=BOUND, show_default=True, help="Give up after so many states.")
@click.option("--replay", "line", metavar="LINE", help="Repeat a failure from the line that it ends with.")
@click.option("--list", "listing", is_flag=True, help="List the methods and the scenarios.")
@output_option("--html", "Write the failure (or the replay) as a page with a lane for each CPU")
@json_option
def race_command(
    patch_name: str | None,
    isa_name: str,
    methods: tuple[str, ...],
    objects: str | None,
    glue: str | None,
    entry: str | None,
    handler: str | None,
    scenario: str,
    cpus: int,
    passes: int,
    erratum: str | None,
    bound: int,
    line: str | None,
    html: str | None,
    json_file: str | None,
    *,
    coherent: bool,
    listing: bool,
) -> None:
    """Explore every order in which a CPU can write a patch while others execute the code.

    The instructions are real ones, executed by the engine, and so is the handler of the trap; the
    memory between the CPUs is a model that permits whatever the architecture's manual does.  A
    failure is the shortest possible, and ends with a line that repeats it.

    With --object, your own compiled code is the method: docs/race.md.

    Exit status: 0 if every method holds; 1 if one fails or is not decided; 2 for wrong usage.
    """
    if listing:
        for line_ in _listing():
            click.echo(line_)
        return
    try:
        if line is not None:
            model, trace = replay(line)
            for text in told(trace):
                say(text)
            _write(html, model, trace)
            sys.exit(any(move.failure for move in trace))
        wanted = _Wanted(patch_name, isa_name, methods, objects, glue, entry, handler, erratum)
        done = []
        for patch, method, own in wanted.methods_of_patches():
            race = Race(patch, method, scenario, cpus, passes, own, coherent, erratum or "")
            done.append(explore(race, bound=bound))
            if json_file is None:
                _print(done[-1])
    except (RaceError, ElfError) as error:
        raise click.ClickException(str(error)) from None
    if not done:
        raise click.ClickException(f"no ISA has {patch_name or objects}")
    failed = [one for one in done if one.found.failure is not None]
    if html is not None and failed:
        _write(html, failed[0].model, failed[0].found.trace)
    elif html is not None:
        click.echo(f"trapline: no failure: {html} is not written", err=True)
    if json_file is not None:
        write_json(json_file, [as_data(one) for one in done])
    else:
        click.echo(f"\n{MODELLED}\n{NOT_MODELLED}")
    sys.exit(not all(one.found.complete for one in done))


def _print(explored: Explored) -> None:
    say(verdict(explored))
    for text in lines(explored):
        say(text)


def _write(html: str | None, model: Model, trace: tuple[Move, ...]) -> None:
    if html is not None:
        write(html, race_page(player_data(model, trace)))


def _listing() -> Iterator[str]:
    width = max(map(len, (*METHODS, *SCENARIOS)))
    yield "Methods:"
    for name, method in METHODS.items():
        yield f"  {name:{width}}  {method.what}: {method.source}"
    yield "Scenarios:"
    for name, what in SCENARIOS.items():
        yield f"  {name:{width}}  {what}"
    yield "Errata:"
    for name, erratum in _ERRATA.items():
        yield f"  {name:{width}}  {erratum.what}: {erratum.source}"
