"""Makes small ELF files, so that tests need no compiler and can damage any byte."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

MACHINES = {"x86_64": 62, "aarch64": 183, "riscv64": 243, "i386": 3}
# Size of a word in bytes, if it is not 8.
WORDS = {"i386": 4}
REL, EXEC, DYN, CORE = 1, 2, 3, 4
NOTYPE, OBJECT, FUNC, GNU_IFUNC = 0, 1, 2, 10
LOCAL, GLOBAL, WEAK = 0, 1, 2
# Section numbers of symbols: the text, and no section at all.
TEXT, ABSOLUTE = 1, 0xFFF1

_PROGBITS, _SYMTAB, _STRTAB, _NOBITS, _DYNSYM = 1, 2, 3, 8, 11


@dataclass
class ElfFile:
    """An ELF file with one segment of text, optionally one of data, and a symbol table.

    `symbols` are (name, value, size, type, binding, section).
    """

    isa: str = "x86_64"
    kind: int = EXEC
    address: int = 0x40_0000
    code: bytes = b""
    data: bytes = b""
    data_address: int = 0x60_0000
    data_memsz: int = 0x2000
    symbols: list[tuple[str, int, int, int, int, int]] = field(default_factory=list)
    dynamic: bool = False
    """The symbols are in a dynamic symbol table."""

    PHOFF = 64
    """Where the program headers are, 56 bytes each; of a 32-bit file 52, and 32 bytes each."""

    def function(self, name, value, size, kind=FUNC, binding=GLOBAL):
        self.symbols.append((name, value, size, kind, binding, TEXT))
        return self

    def _pack_symbol(self, name, value, size, info, section):
        if self.isa in WORDS:
            return struct.pack("<IIIBBH", name, value, size, info, 0, section)
        return struct.pack("<IBBHQQ", name, info, 0, section, value, size)

    def _pack_segment(self, flags, offset, address, filesz, memsz):
        places = (offset, address, address & 0xFFFFFFF, filesz, memsz)
        if self.isa in WORDS:
            return struct.pack("<IIIIIIII", 1, *places, flags, 0x1000)
        return struct.pack("<IIQQQQQQ", 1, flags, *places, 0x1000)

    def bytes(self) -> bytes:
        small = self.isa in WORDS
        header, program_header, section_header, symbol = (52, 32, 40, 16) if small else (64, 56, 64, 24)
        segments = [] if self.kind == REL else self._segments()
        body = bytearray(header + program_header * len(segments))
        offsets = {}

        def put(name, content):
            offsets[name] = len(body)
            body.extend(content.ljust(-(-len(content) // 8) * 8, b"\0"))

        put("text", self.code)
        put("data", self.data)
        strings, table = b"\0", bytes(symbol)
        for name, value, size, kind, binding, section in self.symbols:
            table += self._pack_symbol(len(strings), value, size, binding << 4 | kind, section)
            strings += name.encode() + b"\0"
        put("symtab", table)
        put("strtab", strings)
        names = b"\0.text\0.bss\0.symtab\0.strtab\0"
        put("shstrtab", names)
        base = 0 if self.kind == REL else self.address
        sections = [
            (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
            (names.index(b".text"), _PROGBITS, 6, base, offsets["text"], len(self.code), 0, 0, 16, 0),
            (names.index(b".bss"), _NOBITS, 3, 0, offsets["data"], 0x100, 0, 0, 32, 0),
            (names.index(b".strtab"), _STRTAB, 0, 0, offsets["strtab"], len(strings), 0, 0, 1, 0),
            (names.index(b".strtab"), _STRTAB, 0, 0, offsets["shstrtab"], len(names), 0, 0, 1, 0),
        ]
        if self.symbols:
            kind = _DYNSYM if self.dynamic else _SYMTAB
            sections.append((names.index(b".symtab"), kind, 0, 0, offsets["symtab"], len(table), 3, 1, 8, symbol))
        self.shoff = len(body)
        for section in sections:
            body += struct.pack("<IIIIIIIIII" if small else "<IIQQQQIIQQ", *section)
        for number, (address, flags, offset, filesz, memsz) in enumerate(segments):
            place = offsets[offset]
            start = header + program_header * number
            body[start : start + program_header] = self._pack_segment(flags, place, address, filesz, memsz)
        body[:header] = struct.pack(
            "<4sBBBB8xHHIIIIIHHHHHH" if small else "<4sBBBB8xHHIQQQIHHHHHH",
            b"\x7fELF", 1 if small else 2, 1, 1, 0, self.kind, MACHINES[self.isa], 1, self.address,
            header if segments else 0, self.shoff, 0, header, program_header, len(segments), section_header,
            len(sections), 4,
        )  # fmt: skip
        return bytes(body)

    def _segments(self):
        segments = [(self.address, 5, "text", len(self.code), len(self.code))]
        if self.data:
            segments.append((self.data_address, 6, "data", len(self.data), self.data_memsz))
        return segments

    def write(self, path):
        path.write_bytes(self.bytes())
        return path
