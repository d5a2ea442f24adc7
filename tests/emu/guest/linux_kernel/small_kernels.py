"""Kernels' files of a few functions, made for tests: they cannot be booted."""

import lzma
import struct

from tests.emu.guest.linux_kernel.test_kernel_files import VERSION, bzimage, elf, kallsyms

# Where the kernels of an ISA are linked, and the symbol of their first byte.
BASES = {
    "riscv64": (0xFFFFFFFF80000000, "_start"),
    "aarch64": (0xFFFF800080000000, "_text"),
    "x86_64": (0xFFFFFFFF81000000, "_text"),
}
TEXT = 0x1000
SIZE = 0x40
# The code of the file, by function.  What boot makes of ftrace's pads and of returns is in the tests.
FUNCTIONS = {
    "riscv64": {
        "traced": "0100 0100 0100 0100  4111 4101 8280",  # pad; addi sp; addi sp; ret
        "tail_called": "0100 0100 0100 0100  4111 4101 6ff0dff0",  # pad; addi sp; addi sp; j far
        "blacklisted": "4111 4101 8280",
        "without_plan": "8967 0945 6f00a000",
    },
    "aarch64": {
        "traced": "1f2003d5 1f2003d5 3f2303d5 bf2303d5 c0035fd6",  # pad; paciasp; autiasp; ret
        "tail_called": "1f2003d5 1f2003d5 3f2303d5 f0ffff17",  # pad; paciasp; b far
        "blacklisted": "3f2303d5 c0035fd6",
        "without_plan": "000080d2 020000d4",
    },
    "x86_64": {
        "traced": "f30f1efa e800000000 55 5d e9fb0f0000",  # endbr64; call __fentry__; push; pop; jmp thunk
        "tail_called": "e800000000 55 5d e900ffffff",
        "blacklisted": "55 5d e900000000",
        "without_plan": "4889c8 ebfe",
    },
}
# ISA -> offset of ftrace's pad, of the jump to the return thunk.
_PADS = {"riscv64": 0, "aarch64": 0, "x86_64": 4}
_RETURNS = {"x86_64": 11}


def small_kernel(isa):
    """The file of a kernel with `FUNCTIONS` and the tables that say what boot does with them."""
    base, first = BASES[isa]
    places = {name: TEXT + SIZE * number for number, name in enumerate(FUNCTIONS[isa])}
    image = bytearray(0x2000)
    for name, code in FUNCTIONS[isa].items():
        content = bytes.fromhex(code)
        image[places[name] : places[name] + len(content)] = content
    text_end = TEXT + SIZE * len(places)
    symbols = {first: 0, "_stext": TEXT, **places, "_etext": text_end}
    at = 0x1800

    def table(start, end, *entries, words="Q"):
        nonlocal at
        data = struct.pack(f"<{len(entries)}{words}", *entries)
        image[at : at + len(data)] = data
        symbols[start], symbols[end] = at, at + len(data)
        at += 0x80

    pads = [base + places["traced"] + _PADS[isa], base + places["tail_called"]]
    table("__start_mcount_loc", "__stop_mcount_loc", *pads)
    table("__start_kprobe_blacklist", "__stop_kprobe_blacklist", base + places["blacklisted"])
    if isa in _RETURNS:
        distance = places["traced"] + _RETURNS[isa] - at
        table("__return_sites", "__return_sites_end", distance, words="i")
    image[0x100 : 0x100 + len(VERSION)] = VERSION
    if isa == "x86_64":
        entries = [(base + place, f"t{name}") for name, place in symbols.items()]
        content = bytes(image) + kallsyms(entries, base=base)
        return bzimage(lzma.compress(elf(segments=((base & 0x7FFFFFFF, content),))))
    image[56:60] = {"riscv64": b"RSC\x05", "aarch64": b"ARM\x64"}[isa]
    return bytes(image) + kallsyms([(base + place, f"t{name}") for name, place in symbols.items()], base=base)
