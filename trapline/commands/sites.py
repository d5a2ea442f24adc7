"""The command `trapline sites`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from rich.text import Text

from emu.elf.file import ElfError
from emu.elf.stripped import marked
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.guest.linux_kernel.files.text import LinuxText
from emu.isa import ISAS
from emu.isa.disassembly import Syntax
from providers.fidelity import Fidelity
from trapline.commands.shared import json_option, lines_option, print_lines, say, syntax_option, write_json, write_lines
from trapline.lab.sites import instructions, report
from trapline.lab.sites.fbt import SitesError, sites
from trapline.lab.sites.linux_kernel import NOTE
from trapline.support.options import debug_root_option
from trapline.support.own_files import TargetError
from trapline.support.targets import default_provider, find_file


@dataclass(frozen=True, slots=True)
class _Asked:
    """The request to show the sites of a file."""

    isa: str | None
    function: str | None
    fidelity: Fidelity

    def fbt(self, path: Path, syntax: Syntax, *, summary: bool) -> tuple[Iterable[Text], list[Any]]:
        """Return FBT's sites as lines of text and as data."""
        found = sites(path, isa=self.isa, function=self.function, syntax=syntax, fidelity=self.fidelity)
        if summary:
            return report.summary_text(found), report.summary_data(found)
        return report.text(found), report.as_data(found)

    def user(self, path: Path, provider: str, syntax: Syntax, *, summary: bool) -> tuple[Iterable[Text], list[Any]]:
        """Return the decision of each instruction as lines of text and as data."""
        asked: dict[str, Any] = {
            "isa": self.isa, "function": self.function, "provider": provider, "fidelity": self.fidelity
        }  # fmt: skip
        if summary:
            counts = instructions.user_summary(path, **asked)
            return instructions.summary_text(counts), instructions.as_data(counts)
        each = instructions.user_sites(path, syntax=syntax, **asked)
        return instructions.as_text(each), instructions.as_data(each)


@click.command("sites")
@click.argument("target")
@click.option("--function", metavar="GLOB", help="Only functions whose names match, such as 'sys_*'.")
@click.option("--isa", type=click.Choice(list(ISAS)), help="Refuse the file if it is for another machine.")
@click.option(
    "--root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The root directory for TARGET.",
)
@debug_root_option
@click.option(
    "--provider",
    type=click.Choice(["fbt", *instructions.PROVIDERS]),
    help="The provider whose probes are shown; default: fbt for kernels and modules, else pid.",
)
@click.option(
    "--fidelity",
    type=click.Choice([one.value for one in Fidelity]),
    default=Fidelity.EXACT.value,
    show_default=True,
    help="Reproduce the quirks of that system.",
)
@click.option("--summary", is_flag=True, help="Show only the number of sites that each rule decides.")
@syntax_option
@json_option
@lines_option("function or row")
def sites_command(
    target: str,
    root: Path | None,
    provider: str | None,
    fidelity: str,
    syntax: str,
    *,
    summary: bool,
    json_file: str | None,
    lines_file: str | None,
    **wanted: Any,
) -> None:
    """Show where probes go in TARGET, and by which rule they do not go elsewhere.

    TARGET is the path of an ELF file, of a Linux kernel (vmlinuz) or of a module of one (.ko,
    .ko.xz), a program or library of the --root by its name, testbins:NAME, or linux-kernel for the
    one that `trapline kernel get` has fetched.  The pid provider, uprobes and kinst probe every
    instruction: what replaces each is shown.
    """
    asked = _Asked(fidelity=Fidelity(fidelity), **wanted)
    try:
        machine = ISAS[asked.isa] if asked.isa else None
        image = find_file(target, machine, root)
        opened = open_image(image, machine)
        provider = provider or default_provider(opened)
        if provider == "fbt":
            text, data = asked.fbt(image, Syntax(syntax), summary=summary)
        else:
            text, data = asked.user(image, provider, Syntax(syntax), summary=summary)
    except (ElfError, SitesError, TargetError) as error:
        raise click.ClickException(str(error)) from None
    unnamed = 0 if isinstance(opened, LinuxText) else len(marked(opened.functions))
    if unnamed:
        click.echo(
            f"trapline: {unnamed:,} of {len(opened.functions):,} functions have no symbol: they are named by their "
            f"addresses in .eh_frame (some may be parts of functions)",
            err=True,
        )
    if json_file is not None:
        write_json(json_file, data)
    if lines_file is not None:
        write_lines(lines_file, data)
    if json_file or lines_file:
        return
    print_lines(text)
    if isinstance(opened, LinuxText):
        say(f"{opened.path}: {NOTE}", err=True)
