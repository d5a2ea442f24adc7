"""The command `trapline sites`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from emu.disassembly import Syntax
from emu.elf import ElfError, Image
from emu.isa import ISAS
from trapline.commands.shared import print_lines, syntax_option
from trapline.lab import sites_report, user_sites
from trapline.lab.sites import PROVIDERS, SitesError, sites
from trapline.own_files import TargetError
from trapline.targets import default_provider, find_file


@click.command("sites")
@click.argument("target")
@click.option("--function", metavar="GLOB", help="Only functions whose names match, such as 'sys_*'.")
@click.option("--isa", type=click.Choice(list(ISAS)), help="Refuse the file if it is for another machine.")
@click.option(
    "--root", type=click.Path(exists=True, file_okay=False, path_type=Path), help="Where TARGET is looked up."
)
@click.option(
    "--provider",
    type=click.Choice([*PROVIDERS, *user_sites.PROVIDERS]),
    help="The provider whose probes are shown; default: fbt for kernels and modules, else pid.",
)
@syntax_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sites_command(
    target: str,
    root: Path | None,
    function: str | None,
    isa: str | None,
    provider: str | None,
    syntax: str,
    *,
    as_json: bool,
) -> None:
    """Show where probes go in TARGET, an ELF file, and by which rule they do not go elsewhere.

    TARGET is a path, a program or library of the --root by its name, or testbins:NAME.  The pid
    provider and uprobes probe every instruction: what replaces each is shown.
    """
    try:
        machine = ISAS[isa] if isa else None
        image = find_file(target, machine, root)
        provider = provider or default_provider(Image(image, isa=machine))
        if provider in user_sites.PROVIDERS:
            each = user_sites.user_sites(image, isa=isa, function=function, provider=provider, syntax=Syntax(syntax))
            text, data = user_sites.as_text(each), json.dumps(user_sites.as_data(each), indent=1)
        else:
            found = sites(image, isa=isa, function=function, provider=provider, syntax=Syntax(syntax))
            text, data = sites_report.text(found), sites_report.as_json(found)
    except (ElfError, SitesError, TargetError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(data)
        return
    print_lines(text)
