"""The command `trapline displace`: the assembly bench."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from typing import Any, Final

import click

from emu.assembly import AssemblyError
from emu.isa import ISAS
from emu.isa.disassembly import Syntax
from providers.fidelity import Fidelity
from trapline.commands.completion import offering
from trapline.commands.shared import json_option, output_option, print_lines, syntax_option, write, write_json
from trapline.lab.displace import report
from trapline.lab.displace.bench import DisplacedCode, DisplaceError, displace, isa_of
from trapline.lab.displace.decisions import PROVIDERS
from trapline.lab.displace.run import MOST, Run, run, setting

_INSTRUCTIONS: Final = 32


def _number(_context: click.Context, _parameter: click.Parameter, value: str) -> int:
    try:
        return int(value, 0)
    except ValueError:
        raise click.BadParameter(f"'{value}' is not a number") from None


def _bytes(text: str) -> bytes:
    """Return bytes from hexadecimal, which may have blanks, colons and 0x in it."""
    digits = re.sub(r"0x|[\s,:]", "", text)
    try:
        return bytes.fromhex(digits)
    except ValueError:
        raise DisplaceError(f"'{text}' is not bytes in hexadecimal, such as 'fd7bbfa9'") from None


def _settings(isa: str, texts: tuple[str, ...]) -> dict[str, int]:
    words = [word for text in texts for word in re.split(r"[,;\s]+", text) if word]
    return dict(setting(isa_of(isa), word) for word in words)


# Bytes where an ISA is expected.
_HEX: Final = re.compile(r"(0x)?([0-9a-f]{2})+", re.IGNORECASE)


def _words(words: tuple[str, ...], named: str | None) -> tuple[str, str]:
    """Return the ISA and the code."""
    given = (named, *words) if named is not None else words
    if len(given) < 2:
        if given and _HEX.fullmatch(given[0]):
            raise click.UsageError(f"no ISA; for bytes: displace x86_64 --hex {given[0]}")
        raise click.UsageError(f"no {'code' if given else 'ISA and no code'}: displace x86_64 'push rbp; ret'")
    if len(given) > 2:
        raise click.UsageError(f"'{given[2]}' is one word too many: quote the code")
    return given[0], given[1]


@click.command("displace")
@click.argument("words", metavar="ISA CODE", nargs=-1, shell_complete=offering(lambda: ISAS))
@click.option(
    "--isa", "named", metavar="ISA", shell_complete=offering(lambda: ISAS), help="The ISA, instead of the first word."
)
@click.option("--hex", "as_hex", is_flag=True, help="CODE is bytes in hexadecimal, not assembly.")
@click.option(
    "--at", "address", default="0", callback=_number, metavar="ADDRESS", help="The address of the code; default: 0."
)
@click.option(
    "--run",
    "settings",
    multiple=True,
    is_flag=False,
    flag_value="",
    metavar="[REGISTER=NUMBER,...]",
    help="Run it, the original beside what is patched, from these registers and words of memory ([0x100]=7).",
)
@click.option(
    "--count",
    type=click.IntRange(1, MOST),
    default=_INSTRUCTIONS,
    show_default=True,
    help="With --run: stop after so many instructions.",
)
@click.option(
    "--provider",
    "providers",
    type=click.Choice(sorted(PROVIDERS)),
    multiple=True,
    help="Show only this provider (may be repeated).",
)
@click.option(
    "--fidelity",
    type=click.Choice([one.value for one in Fidelity]),
    default=Fidelity.EXACT.value,
    show_default=True,
    help="Decide as that system does, with its quirks.",
)
@syntax_option
@output_option("--html", "Write a page that plays it: decisions, and with --run the run", "html_file")
@json_option
def displace_command(
    words: tuple[str, ...],
    named: str | None,
    settings: tuple[str, ...],
    providers: tuple[str, ...],
    json_file: str | None,
    count: int,
    address: int,
    fidelity: str,
    syntax: str,
    html_file: str | None,
    *,
    as_hex: bool,
) -> None:
    """Show what becomes of each instruction of CODE when a probe is put on it.

    CODE is assembly, such as 'push rbp; mov rbp, rsp', or - for standard input.  Statements are
    separated by semicolons or new lines; there are labels, and .byte and .inst put bytes.  As the
    target of a branch a number is an address, and on RISC-V a distance.

    Each instruction is shown with what FBT, the pid provider, uprobes and kinst make of it: the
    plan that emulates it, the copy that runs elsewhere and how it is rewritten, or the rule that
    refuses it; and what the real systems do otherwise.

    Exit status: 0; with --run 1 if a probed instruction did not do the same; 1 for an error.
    """
    isa, code = _words(words, named)
    try:
        text = sys.stdin.read() if code == "-" else code
        whole = displace(
            isa, _bytes(text) if as_hex else text, address=address, syntax=Syntax(syntax), fidelity=Fidelity(fidelity)
        )
        found = _only(whole, providers)
        done = run(found, isa, _settings(isa, settings), count=count) if settings else None
    except (AssemblyError, DisplaceError) as error:
        raise click.ClickException(str(error)) from None
    if html_file is not None:
        from trapline.player.bench import bench_page  # noqa: PLC0415  only the user of a page waits for jinja2

        write(html_file, bench_page(isa, found, done))
    if json_file is not None:
        data: dict[str, Any] = report.as_data(isa, found)
        write_json(json_file, data | ({"run": report.run_as_data(done)} if done else {}))
    if html_file is None and json_file is None:
        missing = PROVIDERS - {decision.provider for decision in whole[0].decisions} if not providers else ()
        _print(found, done, missing)
    sys.exit(done is not None and not done.same)


def _only(found: DisplacedCode, providers: tuple[str, ...]) -> DisplacedCode:
    """Return the instructions with the decisions of some providers.  Raises `DisplaceError`."""
    if not providers:
        return found
    there = {decision.provider for decision in found[0].decisions}
    missing = set(providers) - there
    if missing:
        raise DisplaceError(f"there is no {missing.pop()} on this ISA: there are {', '.join(sorted(there))}")
    return DisplacedCode(one.only(providers) for one in found)


def _print(found: DisplacedCode, done: Run | None, missing: Iterable[str]) -> None:
    print_lines(report.as_text(found, missing))
    if done is not None:
        click.echo()
        print_lines(report.run_as_text(done))
