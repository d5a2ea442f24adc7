"""The probe sites of a provider in an ELF file, and the reasons for all refusals.

No code runs and nothing is written: the functions of the file are scanned as the provider scans
those of a loaded module, and every decision is returned as data: each site with its instruction,
its patch and its plan, each refusal with its rule and the rule's source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from emu.elf.image import Image
from emu.elf.symbols import Symbol
from emu.guest.linux_kernel.files.kernel_file import open_image
from emu.guest.linux_kernel.files.text import LinuxText
from emu.guest.modules import Module, dependencies
from emu.isa import ISAS, Isa, disassembly
from emu.isa.disassembly import Syntax
from emu.support.did_you_mean import did_you_mean
from providers.fbt import PORTS, walk
from providers.fbt.exclusions import module_refusal
from providers.fbt.port import Function, Port, ScanResult
from providers.fidelity import Fidelity
from trapline.lab.sites.data import FunctionSites, Instruction, PassedOver, ProbeSite
from trapline.lab.sites.linux_kernel import KernelSites


class SitesError(Exception):
    """The sites cannot be listed; the message says why, on one line."""


def sites(
    path: str | Path,
    *,
    isa: str | None = None,
    function: str | None = None,
    syntax: Syntax = Syntax.INTEL,
    fidelity: Fidelity = Fidelity.EXACT,
) -> list[FunctionSites]:
    """Scan the functions of an ELF file whose names match the glob `function`, all if it is None.

    They are in the order of the symbol table, as FBT scans them.  With `Fidelity.FREEBSD` they are
    decoded like by FreeBSD's disassembler.  Raises `emu.elf.image.ElfError` for a file that cannot
    be used, also if it is not for `isa`, and `SitesError` if nothing matches.
    """
    image = open_image(path, ISAS[isa] if isa else None)
    if not image.functions:
        raise SitesError(f"{path}: no function symbols, and no .eh_frame that tells where functions are (stripped?)")
    found = list(_fbt(image, lambda name: function is None or fnmatchcase(name, function), syntax, fidelity))
    if not found and function is not None:
        hint = did_you_mean(function, (symbol.name for symbol in image.functions))
        raise SitesError(f"{path}: no function matches '{function}'{hint}")
    return found


def _fbt(image: Image, wanted: Callable[[str], bool], syntax: Syntax, fidelity: Fidelity) -> Iterator[FunctionSites]:
    """Yield FBT's results for the file, treated as a kernel module of its name."""
    reader = _Reader(image.isa, syntax)
    if isinstance(image, LinuxText):
        yield from KernelSites(image).functions(
            wanted, lambda symbol, address: reader.at(image.read(address, 16), address, address - symbol.value)
        )
        return
    module = Module(image.path.name, image.symbols, image.read, dependencies(image.symbols))
    refused = module_refusal(module)
    if refused is not None:
        for symbol in module.functions():
            if wanted(symbol.name):
                yield FunctionSites(symbol.name, symbol.value, symbol.size, (), (), refused)
        return
    port = PORTS[image.isa.name]
    for symbol, code, result in walk(port, module.functions(), image.read, wanted, fidelity):
        yield _function(reader, port, symbol, code, result)


class _Reader(NamedTuple):
    """Reads instructions of one ISA."""

    isa: Isa
    syntax: Syntax

    def instruction(self, function: Function, address: int) -> Instruction:
        """Return the instruction at an address of a function."""
        offset = address - function.address
        return self.at(function.code[offset : offset + 16], address, offset)

    def at(self, code: bytes, address: int, offset: int) -> Instruction:
        """Return the instruction that some code begins with."""
        found = disassembly.first(self.isa, code, address, self.syntax)
        size, text = found[1:] if found else (self.isa.instruction_alignment, disassembly.NO_INSTRUCTION)
        return Instruction(address, offset, code[:size], text)


def _function(
    reader: _Reader, port: Port, symbol: Symbol, function: Function | None, result: ScanResult
) -> FunctionSites:
    """Combine a scan's result with its instructions."""
    if function is None or result.refusal is not None:
        rule = result.refusal.rule if result.refusal else None
        return FunctionSites(symbol.name, symbol.value, symbol.size, (), (), rule)
    isa = reader.isa
    remarks = {remark.address: remark.rule for remark in port.remarks(function, result)}
    addresses = {site.address for site in result.sites}
    return FunctionSites(
        name=symbol.name,
        address=symbol.value,
        size=symbol.size,
        sites=tuple(
            ProbeSite(
                probe=site.probe,
                instruction=reader.instruction(function, site.address),
                patch=site.patch,
                invop=site.rval,
                invop_name=next(row.code for row in isa.stub.rows if row.invop == site.rval),
                decision=isa.stub.decide(function.code[site.address - function.address :], site.address),
                remark=remarks.get(site.address),
            )
            for site in result.sites
        ),
        passed_over=tuple(
            PassedOver(reader.instruction(function, address), rule)
            for address, rule in remarks.items()
            if address not in addresses
        ),
        refusal=None,
    )
