"""Small programs made here, so that their layout can be that of any linker.

`work` is called twice by `main`, which `_start` calls; the exit status is 4.
"""

import struct
from typing import NamedTuple

from emu.assembly import machine_code
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, CLASSES, EXECINSTR, EXECUTABLE, WRITE, OutputSection, OutputSymbol, elf_file
from emu.isa import ISAS

STATUS = 4
BASE = 0x40_0000
_ALIGNMENT = 16
_NOTES = 7

# Text of each function; {0} is the address of what it calls, {at8} the distance to there from its eighth byte.
WORK = {
    "x86_64": "nop; mov edi, 4; ret",
    "i386": "nop; mov ebx, 4; ret",
    "aarch64": "nop; mov w0, #4; ret",
    "riscv64": "addi x0, x0, 0; addi a0, x0, 4; jalr x0, 0(ra)",
}
MAIN = {
    "x86_64": "push rbp; mov rbp, rsp; call {0:#x}; call {0:#x}; pop rbp; ret",
    "i386": "push ebp; mov ebp, esp; call {0:#x}; call {0:#x}; pop ebp; ret",
    "aarch64": "stp x29, x30, [sp, #-16]!; bl #{0:#x}; bl #{0:#x}; ldp x29, x30, [sp], #16; ret",
    "riscv64": "addi sp, sp, -16; sd ra, 8(sp); jal ra, {at8}; jal ra, {at12}; ld ra, 8(sp); addi sp, sp, 16; "
    "jalr x0, 0(ra)",
}
START = {
    "x86_64": "call {0:#x}; mov eax, 60; syscall",
    "i386": "call {0:#x}; mov eax, 1; int 0x80",
    "aarch64": "bl #{0:#x}; mov x8, #93; svc #0",
    "riscv64": "jal ra, {at0}; addi a7, x0, 93; ecall",
}
# The value of a half-word at an address becomes the exit status.
TELL = {
    "x86_64": "movzx edi, word ptr [{0:#x}]; ret",
    "i386": "movzx ebx, word ptr [{0:#x}]; ret",
    "aarch64": "movz x1, #{high}, lsl #16; movk x1, #{low}; ldrh w0, [x1]; ret",
    "riscv64": "lui a1, {upper}; lhu a0, {rest}(a1); jalr x0, 0(ra)",
}


class Layout(NamedTuple):
    """Segments that share pages of the file, each at the offset at which the one before it ends."""

    isa: str
    page: int = 0x1000
    """How far a segment's address is from that of the segment before it, beyond their distance in the file."""
    base: int = BASE

    def addresses(self, sizes):
        """Return the addresses of segments of so many bytes."""
        form = CLASSES[ISAS[self.isa].word]
        offset, found = form.header.size + form.segment_size * len(sizes), []
        offset += -offset % _ALIGNMENT
        for number, size in enumerate(sizes):
            found.append(self.base + offset + number * self.page)
            offset += size + -size % _ALIGNMENT
        return found


def padded(data):
    """Return data that the next segment can follow."""
    return data + bytes(-len(data) % _ALIGNMENT)


def function(name, address, code, binding=Binding.GLOBAL):
    """Return a function's symbol."""
    return OutputSymbol(name, address, len(code), SymbolType.FUNC, binding)


def program(layout, kinds=("r", "x", "w"), *, shared=False, work=None, marked=False, statics=False):
    """Return a program whose segments have these kinds: r, x, y (a second one with code), w.

    `shared` makes its type that of a position-independent program; `work` is the text of another
    `work`.  `marked` puts a marker at its first byte, with a semaphore in the last segment.
    `statics`: `work` of a.c and `main` of b.c are both called `helper`, and each file has a `count`
    in the last segment.
    """
    isa = ISAS[layout.isa]
    flags = {"r": ALLOC, "w": ALLOC | WRITE, "x": ALLOC | EXECINSTR, "y": ALLOC | EXECINSTR}
    data = {"r": b"rodata__" * 2, "w": bytes(16)}

    def code(text, address, target, **named):
        distances = {f"at{offset}": target - address - offset for offset in (0, 8, 12)}
        return machine_code(isa, text[layout.isa].format(target, **distances, **named), address)

    def made(addresses):
        at = dict(zip(kinds, addresses, strict=False))
        last = addresses[-1]
        rest = (last & 0xFFF) - ((last & 0x800) << 1)
        named = {"high": last >> 16, "low": last & 0xFFFF, "upper": (last - rest) >> 12, "rest": rest}
        first = code(work or WORK, at["x"], last, **named)
        second = code(MAIN, at.get("y", at["x"] + len(padded(first))), at["x"])
        main = at.get("y", at["x"] + len(padded(first)))
        start = main + len(padded(second))
        third = code(START, start, main)
        after = padded(second) + padded(third)
        parts = {"x": padded(first) + (b"" if "y" in at else after), "y": after, **data}
        symbols = [
            function("work", at["x"], first), function("main", main, second), function("_start", start, third),
        ]  # fmt: skip
        return [parts[kind] for kind in kinds], symbols, start

    guess = layout.addresses([0] * len(kinds))
    for _ in range(2):
        parts, symbols, entry = made(guess)
        guess = layout.addresses([len(part) for part in parts])
    parts, symbols, entry = made(guess)
    if statics:
        symbols = [
            one for symbol, file in zip(symbols, ("a.c", "b.c"), strict=False)
            for one in (
                OutputSymbol(file, 0, 0, SymbolType.FILE, Binding.LOCAL),
                symbol._replace(name="helper", binding=Binding.LOCAL),
                OutputSymbol("count", guess[-1] + 4 * (file == "b.c"), 4, SymbolType.OBJECT, Binding.LOCAL),
            )
        ] + symbols[2:]  # fmt: skip
    sections = [
        OutputSection(f".{kind}{number}", flags[kind], part, address, alignment=_ALIGNMENT)
        for number, (kind, part, address) in enumerate(zip(kinds, parts, guess, strict=True))
    ]
    if marked:
        sections.append(OutputSection(".note.stapsdt", 0, note(isa, symbols[0].value, guess[-1]), 0, 4, _NOTES))
    content = bytearray(elf_file(isa, EXECUTABLE, sections, symbols, entry=entry))
    if shared:
        content[16:18] = (3).to_bytes(2, "little")
    return bytes(content)


def note(isa, location, semaphore, provider="small", name="mark", arguments=""):
    """Return the note of a marker (systemtap's wiki, UserSpaceProbeImplementation)."""
    words = b"".join(value.to_bytes(isa.word, "little") for value in (location, 0, semaphore))
    content = words + b"".join(text.encode() + b"\0" for text in (provider, name, arguments))
    owner = b"stapsdt\0"
    return struct.pack("<III", len(owner), len(content), 3) + owner + content + bytes(-len(content) % 4)


def shared_object(isa, symbols, versions, *, hash_table="sysv", headers=True, soname="libsmall.so.1"):
    """Return a library with these dynamic symbols: (name, address, version, hidden); code fills its first page.

    `hash_table` is sysv or gnu; without `headers` there are no section headers.
    """
    form, word = CLASSES[isa.word], isa.word
    texts = b"\0" + b"".join(f"{name}\0".encode() for name in (soname, *versions, *(one[0] for one in symbols)))

    def text(name):
        return texts.index(b"\0" + name.encode() + b"\0") + 1

    table = form.symbol(0, 0, 0, 0, 0, 0) + b"".join(
        form.symbol(text(name), Binding.GLOBAL << 4 | SymbolType.FUNC, 0, 1, address, 4)
        for name, address, *_ in symbols
    )
    numbers = {version: number for number, version in enumerate(versions, 2)} | {"": 1}
    marks = struct.pack(
        f"<{len(symbols) + 1}H", 0, *(numbers[version] | hidden << 15 for *_, version, hidden in symbols)
    )
    definitions = b"".join(
        struct.pack("<HHHHIII", 1, flag, number, 1, 0, 20, 28 if number <= len(versions) else 0)
        + struct.pack("<II", text(name), 0)
        for number, (name, flag) in enumerate(((soname, 1), *((one, 0) for one in versions)), 1)
    )
    count = len(symbols) + 1
    if hash_table == "sysv":
        tag, hashes = 4, struct.pack(f"<II{1 + count}I", 1, count, *(0,) * (1 + count))
    else:
        chain = [0] * (len(symbols) - 1) + [1]
        tag = 0x6FFF_FEF5
        hashes = struct.pack("<IIII", 1, 1, 1, 0) + bytes(word) + struct.pack(f"<{1 + len(chain)}I", 1, *chain)
    parts = {5: texts, 6: table, 0x6FFF_FFF0: marks, 0x6FFF_FFFC: definitions, tag: hashes}
    tags, content, base = [(14, text(soname)), (10, len(texts))], b"", 0x2000
    for number, part in parts.items():
        tags.append((number, base + len(content)))
        content += part + bytes(-len(part) % 8)
    code = bytes(0x1000)
    dynamic = b"".join(one.to_bytes(word, "little") for pair in (*tags, (0, 0)) for one in pair)
    file = bytearray(
        elf_file(
            isa, EXECUTABLE,
            [
                OutputSection(".text", ALLOC | EXECINSTR, code, 0x1000),
                OutputSection(".tables", ALLOC, content, base),
                OutputSection(".dynamic", ALLOC, dynamic, 0x4000),
            ],
            [],
        )
    )  # fmt: skip
    file[16:18] = (3).to_bytes(2, "little")
    at = form.header.size + 2 * form.segment_size
    file[at : at + 4] = (2).to_bytes(4, "little")
    if not headers:
        start, count_at = (0x28, 0x3C) if word == 8 else (0x20, 0x30)
        file[start : start + word] = bytes(word)
        file[count_at : count_at + 4] = bytes(4)
    else:
        # Its symbol table is empty: what it has is found by the dynamic section.
        file = file.replace(b".symtab\0", b".symtaq\0")
    return bytes(file)
