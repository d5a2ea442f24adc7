"""The command `trapline sites`."""

from __future__ import annotations

import click
from rich.console import Console

from emu.elf import ElfError
from emu.isa import ISAS
from trapline.lab import sites_report
from trapline.lab.sites import PROVIDERS, SitesError, sites


@click.command("sites")
@click.argument("image")
@click.option("--function", metavar="GLOB", help="Only functions whose names match, such as 'sys_*'.")
@click.option("--isa", type=click.Choice(list(ISAS)), help="Refuse the file if it is for another machine.")
@click.option("--provider", type=click.Choice(list(PROVIDERS)), default="fbt", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def sites_command(image: str, function: str | None, isa: str | None, provider: str, *, as_json: bool) -> None:
    """Show where probes go in IMAGE, an ELF file, and by which rule they do not go elsewhere."""
    try:
        found = sites(image, isa=isa, function=function, provider=provider)
    except (ElfError, SitesError) as error:
        raise click.ClickException(str(error)) from None
    if as_json:
        click.echo(sites_report.as_json(found))
        return
    console = Console(highlight=False)
    for line in sites_report.text(found):
        if console.is_terminal:
            console.print(line, soft_wrap=True)
        else:
            click.echo(line.plain)
