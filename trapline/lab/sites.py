"""Where a provider's probes go in an ELF file, byte by byte, and why they do not go anywhere else.

Nothing runs and nothing is written: the functions of the file are scanned as the provider scans
those of a loaded module, and every decision comes back as data: each site with its instruction, its
patch and its plan, each refusal with its rule and the rule's source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

import capstone

from emu.displaced import Decision
from emu.elf import Image, Symbol, nearest
from emu.guest.modules import Module
from emu.isa import ISAS, Isa
from providers.fbt import PORTS, walk
from providers.fbt.exclusions import module_refusal
from providers.fbt.port import Function, Port, Rule, ScanResult


class SitesError(Exception):
    """A question that has no answer, on one line."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a function."""

    address: int
    offset: int
    """From the function's start."""
    code: bytes
    text: str
    """As capstone writes it, x86 in AT&T syntax; "(no instruction)" where it cannot."""


@dataclass(frozen=True, slots=True)
class ProbeSite:
    """A place that gets a probe."""

    probe: str
    """Probe name: "entry", "return"."""
    instruction: Instruction
    patch: bytes
    invop: int
    """Invop code the provider keeps with the site."""
    invop_name: str
    decision: Decision
    """What is done with the displaced instruction: the table's row, and the plan."""
    remark: Rule | None
    """Why the site should not be one, if so: the real system's mistakes are kept."""


@dataclass(frozen=True, slots=True)
class PassedOver:
    """A place that might be taken for a site, and is none."""

    instruction: Instruction
    rule: Rule


@dataclass(frozen=True, slots=True)
class FunctionSites:
    """What the provider makes of one function: its sites, or the rule that refuses it."""

    name: str
    address: int
    size: int
    sites: tuple[ProbeSite, ...]
    passed_over: tuple[PassedOver, ...]
    refusal: Rule | None


def sites(
    path: str | Path, *, isa: str | None = None, function: str | None = None, provider: str = "fbt"
) -> list[FunctionSites]:
    """Scan the functions of an ELF file whose names match the glob `function`, all if it is None.

    They come in the order of the symbol table, as the provider meets them.  Raises
    `emu.elf.ElfError` for a file that cannot be used, also if it is not for `isa`, and `SitesError`
    if nothing matches or there is no such provider.
    """
    try:
        scan = PROVIDERS[provider]
    except KeyError:
        known = ", ".join(PROVIDERS)
        raise SitesError(f"provider '{provider}' has no sites to show; known are {known}") from None
    image = Image(path, isa=ISAS[isa] if isa else None)
    if not image.functions:
        raise SitesError(f"{path}: no function symbols (stripped?)")
    found = list(scan(image, lambda name: function is None or fnmatchcase(name, function)))
    if not found and function is not None:
        near = nearest(function, (symbol.name for symbol in image.functions))
        hint = f" (did you mean '{near}'?)" if near else ""
        raise SitesError(f"{path}: no function matches '{function}'{hint}")
    return found


def _fbt(image: Image, wanted: Callable[[str], bool]) -> Iterator[FunctionSites]:
    """Yield what FBT makes of the file, taken as a kernel module of its name."""
    module = Module(image.path.name, image.symbols, image.read)
    refused = module_refusal(module)
    if refused is not None:
        for symbol in module.functions():
            if wanted(symbol.name):
                yield FunctionSites(symbol.name, symbol.value, symbol.size, (), (), refused)
        return
    port = PORTS[image.isa.name]
    for symbol, code, result in walk(port, module.functions(), image.read, wanted):
        yield _function(image.isa, port, symbol, code, result)


# Who can show its sites: (file, which function names are wanted) -> what it makes of them.
PROVIDERS: dict[str, Callable[[Image, Callable[[str], bool]], Iterator[FunctionSites]]] = {"fbt": _fbt}


def _function(isa: Isa, port: Port, symbol: Symbol, function: Function | None, result: ScanResult) -> FunctionSites:
    """Put a scan's result together with the instructions it speaks of."""
    if function is None or result.refusal is not None:
        rule = result.refusal.rule if result.refusal else None
        return FunctionSites(symbol.name, symbol.value, symbol.size, (), (), rule)
    remarks = {remark.address: remark.rule for remark in port.remarks(function, result)}
    places = {site.address for site in result.sites}
    return FunctionSites(
        name=symbol.name,
        address=symbol.value,
        size=symbol.size,
        sites=tuple(
            ProbeSite(
                probe=site.probe,
                instruction=_instruction(isa, function, site.address),
                patch=site.patch,
                invop=site.rval,
                invop_name=next(row.code for row in isa.stub.rows if row.invop == site.rval),
                decision=isa.stub.decide(function.code[site.address - function.address :], site.address),
                remark=remarks.get(site.address),
            )
            for site in result.sites
        ),
        passed_over=tuple(
            PassedOver(_instruction(isa, function, address), rule)
            for address, rule in remarks.items()
            if address not in places
        ),
        refusal=None,
    )


@cache
def _disassembler(isa_name: str) -> capstone.Cs:
    isa = ISAS[isa_name]
    disassembler = capstone.Cs(*isa.capstone)
    if isa.capstone[0] == capstone.CS_ARCH_X86:
        disassembler.syntax = capstone.CS_OPT_SYNTAX_ATT
    return disassembler


def _instruction(isa: Isa, function: Function, address: int) -> Instruction:
    offset = address - function.address
    code = function.code[offset : offset + 16]
    for _address, size, mnemonic, operands in _disassembler(isa.name).disasm_lite(code, address, 1):
        return Instruction(address, offset, code[:size], f"{mnemonic} {operands}".rstrip())
    return Instruction(address, offset, code[: isa.instruction_alignment], "(no instruction)")
