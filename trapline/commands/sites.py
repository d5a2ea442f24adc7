"""The command `trapline sites`."""

from __future__ import annotations

import json

import click

from emu.disassembly import Syntax
from emu.elf import ElfError
from emu.isa import ISAS
from trapline.commands.shared import print_lines, syntax_option
from trapline.lab import sites_report, user_sites
from trapline.lab.sites import PROVIDERS, SitesError, sites


@click.command("sites")
@click.argument("image")
@click.option("--function", metavar="GLOB", help="Only functions whose names match, such as 'sys_*'.")
@click.option("--isa", type=click.Choice(list(ISAS)), help="Refuse the file if it is for another machine.")
@click.option("--provider", type=click.Choice([*PROVIDERS, *user_sites.PROVIDERS]), default="fbt", show_default=True)
@syntax_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sites_command(
    image: str, function: str | None, isa: str | None, provider: str, syntax: str, *, as_json: bool
) -> None:
    """Show where probes go in IMAGE, an ELF file, and by which rule they do not go elsewhere.

    With --provider pid or uprobe: what becomes of every instruction.
    """
    try:
        if provider in user_sites.PROVIDERS:
            each = user_sites.user_sites(image, isa=isa, function=function, provider=provider, syntax=Syntax(syntax))
            text, data = user_sites.as_text(each), json.dumps(user_sites.as_data(each), indent=1)
        else:
            found = sites(image, isa=isa, function=function, provider=provider, syntax=Syntax(syntax))
            text, data = sites_report.text(found), sites_report.as_json(found)
    except (ElfError, SitesError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(data)
        return
    print_lines(text)
