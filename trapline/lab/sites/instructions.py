"""The sites of the pid provider, uprobes and kinst in a file, instruction by instruction.

Every instruction of a function is a site of these providers; each is shown with its decision: it
is emulated, runs out of line, or is refused, with the reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, NamedTuple

from rich.text import Text

from emu.displaced.decision import Code, Decision, Emulated, OutOfLine, Refused, Rule, Stepped
from emu.elf.image import Image
from emu.elf.stripped import selected
from emu.elf.symbols import Symbol
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.guest.linux_kernel.files.text import LinuxText
from emu.isa import ISAS, Isa, disassembly
from emu.isa.disassembly import Syntax
from emu.support.did_you_mean import did_you_mean
from emu.support.words import BadAddressError
from providers import fasttrap, kinst, uprobes
from providers.fidelity import Fidelity
from providers.sequences import REACH
from trapline.lab.sites.fbt import SitesError
from trapline.lab.sites.linux_kernel import KernelSites

# Bytes of the longest instruction.
_LONGEST: Final = 16
_STYLES = {
    "emulated": "green",
    "simulated": "green",
    "out of line": "cyan",
    "single-stepped": "cyan",
    "refused": "yellow",
}


@dataclass(frozen=True, slots=True)
class UserSite:
    """One instruction of a function, and how it is displaced."""

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
    """The plan; the copy, if it is rewritten; or the reason."""


@dataclass(frozen=True, slots=True)
class UserCount:
    """The number of instructions that a rule decides."""

    what: str
    rule: str
    count: int
    why: str
    source: str
    quirk: str
    """The difference between the real system and the CPU; "" if there is none."""


Treat = Callable[[Isa, Code, Fidelity], Decision]


def _kinst(isa: Isa, code: Code, _fidelity: Fidelity) -> Decision:
    port = kinst.PORTS.get(isa.name)
    if port is None:
        raise SitesError(f"there is no kinst for {isa.title}; there is for {', '.join(kinst.PORTS)}")
    return port.treat(code)


PROVIDERS: Final[dict[str, Treat]] = {
    "pid": lambda isa, code, fidelity: fasttrap.PORTS[isa.name].treat(code, fidelity),
    "uprobe": lambda isa, code, fidelity: uprobes.PORTS[isa.name].treat(code, fidelity),
    "kinst": _kinst,
}


def _told(decision: Decision, provider: str) -> tuple[str, str]:
    """Return the kind of decision of an instruction, and its details."""
    match decision:
        case Refused(rule):
            errno = f"errno {rule.errno}: " if rule.errno else ""
            return "refused", f"{errno}{rule.why} ({rule.source})"
        case Emulated(rule, _, plan):
            return ("simulated", str(plan)) if provider == "uprobe" else ("emulated", f"{rule.name}: {plan}")
        case OutOfLine() | Stepped():
            what = "single-stepped" if isinstance(decision, Stepped) else "out of line"
            copy = f"as {decision.code.hex()}, {decision.scratch} = the next pc" if decision.scratch else ""
            return what, copy


def user_sites(
    path: str | Path,
    *,
    isa: str | None = None,
    function: str | None = None,
    provider: str = "pid",
    syntax: Syntax = Syntax.INTEL,
    fidelity: Fidelity = Fidelity.EXACT,
) -> list[UserSite]:
    """Return the sites of an ELF file's functions that match the glob `function`.

    Raises `emu.elf.image.ElfError`, and `SitesError` if nothing matches.
    """
    image, kernel = _opened(path, isa, provider)
    return [
        _site(image, code, names, _told(decision, provider), syntax)
        for symbol in _wanted(image, function)
        for code, names, decision in _looked_at(image, symbol, provider, fidelity, kernel)
    ]


def user_summary(
    path: str | Path,
    *,
    isa: str | None = None,
    function: str | None = None,
    provider: str = "pid",
    fidelity: Fidelity = Fidelity.EXACT,
) -> list[UserCount]:
    """Count instructions by decision and by rule, the most frequent first.

    Raises as `user_sites`.
    """
    image, kernel = _opened(path, isa, provider)
    counts: Counter[tuple[str, Rule]] = Counter()
    for symbol in _wanted(image, function):
        for _code, _names, decision in _looked_at(image, symbol, provider, fidelity, kernel):
            counts[_told(decision, provider)[0], decision.rule] += 1
    return [
        UserCount(what, rule.name, count, rule.why, rule.source, rule.quirk)
        for (what, rule), count in counts.most_common()
    ]


def _opened(path: str | Path, isa: str | None, provider: str) -> tuple[Image, KernelSites | None]:
    """Open a file.  Raises `ElfError`, and `SitesError` for programs' probes in a kernel."""
    image = open_image(path, ISAS[isa] if isa else None)
    if not isinstance(image, LinuxText):
        return image, None
    if provider != "kinst":
        what = f"a {image.noun} has probes of fbt and kinst"
        raise SitesError(f"{path}: {what}, not of {provider}, which probes programs")
    return image, KernelSites(image)


def _wanted(image: Image, function: str | None) -> list[Symbol]:
    if not image.functions:
        raise SitesError(
            f"{image.path}: no function symbols, and no .eh_frame that tells where functions are (stripped?)"
        )
    found = [one for one in selected(image.functions, function or "") if one.size]
    if not found:
        hint = did_you_mean(function or "", (one.name for one in image.functions))
        raise SitesError(f"{image.path}: no function matches '{function}'{hint}")
    return found


def _length(isa: Isa, code: bytes) -> int:
    """Return the size of the first instruction, or the smallest size if it does not decode."""
    return isa.instruction_length(code) or isa.instruction_alignment


class _CodeOf(NamedTuple):
    """An instruction of a function."""

    symbol: Symbol
    offset: int
    data: bytes


def _looked_at(
    image: Image, symbol: Symbol, provider: str, fidelity: Fidelity, kernel: KernelSites | None
) -> Iterator[tuple[_CodeOf, str, Decision]]:
    """Yield each instruction of a function, the names of its probes, and how it is displaced."""
    port, treat = fasttrap.PORTS[image.isa.name], PROVIDERS[provider]
    try:
        code = image.code(symbol, beyond=_LONGEST)
    except BadAddressError:
        return
    body = code[: symbol.size]
    if kernel is not None:
        for offset, decision in kernel.kinst(symbol):
            here = code[offset : offset + _LONGEST]
            yield _CodeOf(symbol, offset, here[: _length(image.isa, here)]), "", decision
        return
    returns = set(port.returns(body, symbol.value, fidelity))
    # Where the rest of the function does not decode, the x86 port still finds returns in it.
    for offset in sorted({*port.boundaries(body), *returns}):
        here = code[offset : offset + _LONGEST]
        place = Code.at(code, offset, symbol.value + offset, longest=_LONGEST, around=REACH)
        decision = treat(image.isa, place, fidelity)
        names = [*(["entry"] if not offset else []), *(["return"] if offset in returns else [])]
        yield _CodeOf(symbol, offset, here[: _length(image.isa, here)]), " ".join(names), decision


def _site(image: Image, code: _CodeOf, names: str, told: tuple[str, str], syntax: Syntax) -> UserSite:
    address = code.symbol.value + code.offset
    found = disassembly.first(image.isa, code.data, address, syntax)
    text = found.text if found else disassembly.NO_INSTRUCTION
    return UserSite(code.symbol.name, code.offset, address, code.data.hex(), text, names, *told)


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


def summary_text(counts: Iterable[UserCount]) -> Iterator[Text]:
    """Yield the summary, a line for each rule."""
    counts = list(counts)
    width = max((len(one.rule) for one in counts), default=0)
    for one in counts:
        line = Text(f"{one.count:10,}  ").append(f"{one.what:14}", _STYLES[one.what])
        yield line.append(f"  {one.rule:{width}}  {one.why}").append(f"  [{one.source}]", "dim")


def as_data(sites: Iterable[UserSite | UserCount]) -> list[dict[str, object]]:
    """Return the report as plain data."""
    return [asdict(one) for one in sites]
