"""What the pid provider and uprobes make of a program, instruction by instruction.

Every instruction of a function is a site of theirs; so the question is not where probes go but what
becomes of each displaced instruction: it is emulated, it runs out of line, or no probe may go
there, and why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from rich.text import Text

from emu import disassembly
from emu.disassembly import Syntax
from emu.displaced import Code, Emulated, OutOfLine, Refused, Stepped
from emu.elf import Image, Symbol, nearest
from emu.guest.base import BadAddressError
from emu.isa import ISAS, Isa
from providers import fasttrap, uprobes
from providers.fidelity import Fidelity
from trapline.lab.sites import SitesError

_STYLES = {
    "emulated": "green",
    "simulated": "green",
    "out of line": "cyan",
    "single-stepped": "cyan",
    "refused": "yellow",
}


@dataclass(frozen=True, slots=True)
class UserSite:
    """One instruction of a function, and what becomes of it."""

    function: str
    offset: int
    address: int
    code: str
    """Its bytes, in hexadecimal."""
    text: str
    """The disassembly; "(no instruction)" where there is none."""
    probes: str
    """Names of the probes there besides its offset: entry, return."""
    what: str
    """emulated, simulated, out of line, single-stepped or refused."""
    how: str
    """The plan; the copy, where it is rewritten; or the reason."""


Treat = Callable[[Isa, Code], tuple[str, str]]


def _copied(treated: OutOfLine | Stepped) -> str:
    return f"as {treated.code.hex()}, {treated.scratch} = the next pc" if treated.scratch else ""


def _fasttrap(isa: Isa, code: Code) -> tuple[str, str]:
    match fasttrap.PORTS[isa.name].treat(code, Fidelity.EXACT):
        case Refused(rule):
            return "refused", f"{rule.why} ({rule.source})"
        case Emulated(rule, _, plan):
            return "emulated", f"{rule.name}: {plan}"
        case copy:
            return "out of line", _copied(copy)


def _uprobe(isa: Isa, code: Code) -> tuple[str, str]:
    match uprobes.PORTS[isa.name].treat(code, Fidelity.EXACT):
        case Refused(rule):
            return "refused", f"errno {rule.errno}: {rule.why} ({rule.source})"
        case Emulated(_, _, plan):
            return "simulated", str(plan)
        case copy:
            return "single-stepped", _copied(copy)


PROVIDERS: dict[str, Treat] = {"pid": _fasttrap, "uprobe": _uprobe}


def user_sites(
    path: str | Path,
    *,
    isa: str | None = None,
    function: str | None = None,
    provider: str = "pid",
    syntax: Syntax = Syntax.INTEL,
) -> list[UserSite]:
    """Look at the functions of an ELF file whose names match the glob `function`, all if it is None.

    Raises `emu.elf.ElfError`, and `SitesError` if nothing matches.
    """
    image = Image(path, isa=ISAS[isa] if isa else None)
    if not image.functions:
        raise SitesError(f"{path}: no function symbols (stripped?)")
    wanted = [one for one in image.functions if one.size and (function is None or fnmatchcase(one.name, function))]
    if not wanted:
        near = nearest(function or "", (one.name for one in image.functions))
        raise SitesError(f"{path}: no function matches '{function}'" + (f" (did you mean '{near}'?)" if near else ""))
    return [site for symbol in wanted for site in _sites(image, symbol, PROVIDERS[provider], syntax)]


def _sites(image: Image, symbol: Symbol, treat: Treat, syntax: Syntax) -> Iterator[UserSite]:
    port = fasttrap.PORTS[image.isa.name]
    try:
        code = image.code(symbol, beyond=16)
    except BadAddressError:
        return
    body = code[: symbol.size]
    returns = set(port.returns(body, symbol.value, Fidelity.EXACT))
    offsets = [*port.boundaries(body)]
    for offset, following in zip(offsets, [*offsets[1:], len(body)], strict=True):
        address = symbol.value + offset
        what, how = treat(image.isa, Code(code[offset : offset + 16], address, body[max(0, offset - 64) : offset]))
        names = [*(["entry"] if not offset else []), *(["return"] if offset in returns else [])]
        found = disassembly.first(image.isa.capstone, code[offset:following], address, syntax)
        text = found.text if found else disassembly.NO_INSTRUCTION
        yield UserSite(symbol.name, offset, address, code[offset:following].hex(), text, " ".join(names), what, how)


def as_text(sites: Iterable[UserSite]) -> Iterator[Text]:
    """Yield the report, a line at a time."""
    sites = list(sites)
    width = max((len(one.text) for one in sites), default=0)
    bytes_width = max((len(one.code) for one in sites), default=0)
    counts: dict[str, int] = {}
    current = ""
    for one in sites:
        if one.function != current:
            current = one.function
            yield Text(f"{current}  {one.address:#x}", "bold")
        counts[one.what] = counts.get(one.what, 0) + 1
        line = Text(f"{one.offset:6x}  {one.code:<{bytes_width}}  {one.text:<{width}}  {one.probes:12}  ")
        yield line.append(f"{one.what:14}", _STYLES[one.what]).append(f"  {one.how}".rstrip())
    yield Text()
    yield Text(", ".join(f"{count:,} {what}" for what, count in counts.items()))


def as_data(sites: Iterable[UserSite]) -> list[dict[str, object]]:
    """Return the report as plain data."""
    return [asdict(one) for one in sites]
