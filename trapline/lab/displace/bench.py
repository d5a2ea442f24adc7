"""The assembly bench: instructions, and what becomes of them under every provider.

    for one in displace("x86_64", "push rbp; jne 5"):
        for decision in one.decisions:
            print(one.text, decision.provider, decision.what, decision.how)

Nothing runs here: each provider is asked how it displaces an instruction where it is, after
the code that precedes it.  `trapline.lab.displace.run` runs the instructions.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from emu.assembly import assemble
from emu.isa import ISAS, disassembly
from emu.isa.base import Isa
from emu.isa.disassembly import Syntax
from emu.support.did_you_mean import did_you_mean
from providers import fbt
from providers.fidelity import Fidelity
from trapline.lab.displace.decisions import LONGEST, NOT_A_SITE, Piece, ProviderDecision, Snippet, decisions
from trapline.lab.html_table import Cell, code, html_table


class DisplaceError(Exception):
    """Something that cannot be displaced: the message says why, on one line."""


@dataclass(frozen=True, slots=True)
class DisplacedInstruction:
    """One instruction, and its decision under each provider."""

    address: int
    code: str
    """Its bytes, in hexadecimal."""
    text: str
    written: str
    """The text that was typed; the disassembly for bytes."""
    decisions: tuple[ProviderDecision, ...]

    @property
    def length(self) -> int:
        """Its bytes."""
        return len(self.code) // 2

    def only(self, providers: Collection[str]) -> DisplacedInstruction:
        """Return it with the decisions of some providers."""
        return replace(self, decisions=tuple(one for one in self.decisions if one.provider in providers))

    def decision(self, provider: str) -> ProviderDecision:
        """Return what a provider does with it.  Raises KeyError if it is not on this ISA."""
        return {one.provider: one for one in self.decisions}[provider]

    def _repr_html_(self) -> str:
        return _as_html([self])


class DisplacedCode(tuple[DisplacedInstruction, ...]):
    """The instructions of a snippet; notebooks show them as a table."""

    __slots__ = ()

    def _repr_html_(self) -> str:
        return _as_html(self)


def _as_html(found: Sequence[DisplacedInstruction]) -> str:
    """Return a table: a row for each instruction, a column for each provider."""
    providers = [decision.provider for decision in found[0].decisions] if found else []
    rows = []
    for one in found:
        row = [code(f"{one.address:#x}"), code(one.code), code(one.text)]
        row += [
            Cell(
                (decision.what,) if decision.rule == NOT_A_SITE.name else (decision.what, decision.how),
                bold=True,
                title=f"{decision.rule}: {decision.why} ({decision.source})",
            )
            for decision in one.decisions
        ]
        rows.append(row)
    return html_table(("address", "bytes", "instruction", *providers), rows)


def isa_of(name: str) -> Isa:
    """Return an ISA by its name.  Raises `DisplaceError`."""
    if name not in ISAS:
        raise DisplaceError(f"'{name}' is not an ISA{did_you_mean(name, ISAS)}: there are {', '.join(ISAS)}")
    return ISAS[name]


def pieces(isa: Isa, source: str | bytes, address: int, syntax: Syntax = Syntax.INTEL) -> list[Piece]:
    """Return the instructions of assembly text, or of bytes.

    Raises `DisplaceError`, and `emu.assembly.AssemblyError`.
    """
    if not 0 <= address <= isa.address_mask:
        raise DisplaceError(f"{address:#x} is not an address of {isa.title}")
    if address % isa.instruction_alignment:
        raise DisplaceError(f"{address:#x} is not a multiple of {isa.instruction_alignment}, as addresses of code are")
    if isinstance(source, str):
        written = [(one.address, one.code, one.written) for one in assemble(isa, source, address)]
        return [Piece(at, data, _text(isa, data, at, syntax), text) for at, data, text in written]
    return list(_decoded(isa, source, address, syntax))


def _text(isa: Isa, data: bytes, address: int, syntax: Syntax) -> str:
    told = disassembly.first(isa, data, address, syntax)
    return told.text if told else disassembly.NO_INSTRUCTION


def _decoded(isa: Isa, source: bytes, address: int, syntax: Syntax) -> Iterator[Piece]:
    """Yield the instructions of bytes; one that does not decode is as long as the ISA says."""
    if not source:
        raise DisplaceError("there are no bytes")
    at = 0
    while at < len(source):
        told = disassembly.first(isa, source[at : at + LONGEST], address + at, syntax)
        size = told.size if told else isa.instruction_length(source[at : at + LONGEST]) or len(source) - at
        data = source[at : at + size]
        if isa.instruction_alignment > 1 and len(data) % isa.instruction_alignment:
            rest = "byte is" if len(data) == 1 else f"{len(data)} bytes are"
            raise DisplaceError(f"the last {rest} not a whole instruction of {isa.title}")
        text = told.text if told else disassembly.NO_INSTRUCTION
        yield Piece(address + at, data, text, text)
        at += size


def displace(
    isa: str,
    source: str | bytes,
    *,
    address: int = 0,
    syntax: Syntax = Syntax.INTEL,
    fidelity: Fidelity = Fidelity.EXACT,
) -> DisplacedCode:
    """Return what becomes of each instruction of assembly text, or of bytes.

    `isa` is x86_64, aarch64, riscv64 or i386; the code is at `address`, which matters where a
    branch has an address as its target.  Raises `DisplaceError`, and `emu.assembly.AssemblyError`
    for text that cannot be assembled; both are one line, which names the instruction.
    """
    machine = isa_of(isa)
    found = pieces(machine, source, address, syntax)
    snippet = Snippet(machine, b"".join(one.data for one in found), address, syntax, fidelity)
    scan = fbt.PORTS[machine.name].scan(snippet.function())
    return DisplacedCode(
        DisplacedInstruction(one.address, one.data.hex(), one.text, one.written, tuple(decisions(snippet, one, scan)))
        for one in found
    )
