"""Functions written down as bytes with their assembly beside them, which is checked.

A line is the bytes in hexadecimal, then the instruction as capstone writes it.  A line
whose text begins with a dot is data, and is taken as it is.
"""

from __future__ import annotations

from emu.isa import ISAS
from emu.isa.disassembly import first
from providers.fbt import PORTS
from providers.fbt.port import Function

ADDRESS = 0x10000


def assemble(isa_name, listing, address=ADDRESS):
    """Return the bytes of a listing."""
    isa = ISAS[isa_name]
    code = b""
    for line in filter(None, map(str.strip, listing.splitlines())):
        digits, text = line.split(maxsplit=1)
        piece = bytes.fromhex(digits)
        if not text.startswith("."):
            found = first(isa, piece, address + len(code))
            assert found is not None
            assert found[1:] == (len(piece), text), f"{digits} is not {text!r}"
        code += piece
    return code


def function(isa_name, listing, *, name="f", address=ADDRESS, size=None, beyond=b""):
    """Return a function; it is as long as its listing, unless `size` says otherwise."""
    code = assemble(isa_name, listing, address)
    return Function(name, address, len(code) if size is None else size, code + beyond)


class Scanner:
    """One ISA's scanner, asked about listings."""

    def __init__(self, isa_name):
        self.isa_name = isa_name
        self.port = PORTS[isa_name]

    def sites(self, listing, **options):
        """Return [(probe name, offset), ...]."""
        scanned = function(self.isa_name, listing, **options)
        return [(site.probe, site.address - scanned.address) for site in self.port.scan(scanned).sites]

    def result(self, listing, **options):
        return self.port.scan(function(self.isa_name, listing, **options))

    def refusal(self, listing, **options):
        """Return the name of the rule that refuses a function."""
        result = self.result(listing, **options)
        assert result.sites == ()
        return result.refusal.rule.name

    def remarks(self, listing, **options):
        """Return [(offset, rule name), ...]."""
        scanned = function(self.isa_name, listing, **options)
        result = self.port.scan(scanned)
        return [(address - scanned.address, rule.name) for address, rule in self.port.remarks(scanned, result)]
