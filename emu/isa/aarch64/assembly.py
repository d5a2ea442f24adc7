"""The assembly language of AArch64: what keystone lacks, or encodes wrongly.

Keystone knows Armv8.0.  In the table is what compilers and kernels use of later versions: the
atomic instructions (FEAT_LSE), acquire loads (FEAT_LRCPC), pointer authentication, landing pads,
barriers against speculation; the encryption instructions; and adr, of which keystone gets the
distance wrong.  SVE, SME, memory tags and half precision are left out.

Source of the encodings: Arm ARM (DDI 0487), chapter C6.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from emu.isa.assembly import Assembly, Operand, OutsideAssembler, Row, choice, immediate, number_in, rows
from emu.isa.fields import Field
from emu.support.words import WORD_MASK

# Keystone's number of the architecture (keystone/keystone_const.py); it is little-endian.
_KEYSTONE: Final = (2, 0)
# Keystone lacks SVE, SME, memory tags, half precision, and what came with and after Armv8.3.
_FEATURES: Final = (
    "v9a sve2 sve2-aes sve2-sm4 sve2-sha3 sve2-bitperm sme sme-f64 sme-i64 mte fullfp16 fp16fml bf16 i8mm f32mm f64mm"
    " ls64 mops hbc rand tme sm4 sha3 flagm altnzcv predres sb ssbs wfxt xs rcpc-immo complxnum jsconv"
)
_GNU_FEATURES: Final = (
    "armv8.6-a sve2 sve2-aes sve2-sm4 sve2-sha3 sve2-bitperm memtag fp16 fp16fml f32mm f64mm rng tme ls64"
)
_OUTSIDE: Final = (
    OutsideAssembler(
        "llvm-mc",
        ("-triple=aarch64", "-filetype=obj", "-mattr=" + ",".join(f"+{name}" for name in _FEATURES.split())),
        "llvm",
    ),
    OutsideAssembler(
        "aarch64-linux-gnu-as", ("-march=" + "+".join(_GNU_FEATURES.split()),), "binutils-aarch64-linux-gnu"
    ),
)
_X: Final = {f"x{number}": number for number in range(31)} | {"fp": 29, "lr": 30}
_W: Final = {f"w{number}": number for number in range(31)}
_WHAT: Final = {"x": "a 64-bit register (x0 to x30, xzr)", "w": "a 32-bit register (w0 to w30, wzr)"}


def _near(where: Field) -> Operand:
    """Return a kind of operand that is an address near the instruction."""
    return Operand(lambda text, address: where.write(_distance(number_in(text), address)))


def _distance(target: int, address: int) -> int:
    distance = target - address & WORD_MASK
    return distance - (1 << 64) if distance >> 63 else distance


def _registers() -> Iterator[tuple[str, Operand]]:
    for field, shift in (("d", 0), ("n", 5), ("s", 16)):
        yield f"x{field}", choice(_X | {"xzr": 31}, shift, _WHAT["x"])
        yield f"w{field}", choice(_W | {"wzr": 31}, shift, _WHAT["w"])
        for letter in "vqs":
            names = {f"{letter}{number}": number for number in range(32)}
            yield f"{letter}r{field}", choice(names, shift, f"a vector register ({letter}0 to {letter}31)")
    yield "base", choice(_X | {"sp": 31}, 5, "a base register (x0 to x30, sp)")
    yield "modifier", choice(_X | {"sp": 31}, 16, "a 64-bit register (x0 to x30, sp)")


_KINDS: Final = dict(_registers()) | {
    "near": _near(Field(((23, 5, 2), (30, 29, 0)), signed=True)),
    "label": _near(Field(((23, 5, 2),), signed=True)),
    "nine": immediate(Field(((20, 12, 0),), signed=True)),
    "ten": immediate(Field(((22, 22, 12), (20, 12, 3)), signed=True)),
}
_TEXT: Final = """
adr xd, near = 10000000
paciasp = d503233f
pacibsp = d503237f
autiasp = d50323bf
autibsp = d50323ff
paciaz = d503231f
pacibz = d503235f
autiaz = d503239f
autibz = d50323df
pacia1716 = d503211f
pacib1716 = d503215f
autia1716 = d503219f
autib1716 = d50321df
xpaclri = d50320ff
pacia xd, base = dac10000
pacib xd, base = dac10400
pacda xd, base = dac10800
pacdb xd, base = dac10c00
autia xd, base = dac11000
autib xd, base = dac11400
autda xd, base = dac11800
autdb xd, base = dac11c00
paciza xd = dac123e0
pacizb xd = dac127e0
pacdza xd = dac12be0
pacdzb xd = dac12fe0
autiza xd = dac133e0
autizb xd = dac137e0
autdza xd = dac13be0
autdzb xd = dac13fe0
xpaci xd = dac143e0
xpacd xd = dac147e0
pacga xd, xn, modifier = 9ac03000
retaa = d65f0bff
retab = d65f0fff
eretaa = d69f0bff
eretab = d69f0fff
braaz xn = d61f081f
brabz xn = d61f0c1f
blraaz xn = d63f081f
blrabz xn = d63f0c1f
ldraa xd, [base] = f8200400
ldraa xd, [base, ten] = f8200400
ldraa xd, [base, ten]! = f8200c00
ldrab xd, [base] = f8a00400
ldrab xd, [base, ten] = f8a00400
ldrab xd, [base, ten]! = f8a00c00
bti = d503241f
bti c = d503245f
bti j = d503249f
bti jc = d50324df
esb = d503221f
psb csync = d503223f
tsb csync = d503225f
csdb = d503229f
dgh = d50320df
sb = d50330ff
ssbb = d503309f
pssbb = d503349f
cfinv = d500401f
xaflag = d500403f
axflag = d500405f
ldaprb wd, [base] = 38bfc000
ldaprh wd, [base] = 78bfc000
ldapr wd, [base] = b8bfc000
ldapr xd, [base] = f8bfc000
aese vrd.16b, vrn.16b = 4e284800
aesd vrd.16b, vrn.16b = 4e285800
aesmc vrd.16b, vrn.16b = 4e286800
aesimc vrd.16b, vrn.16b = 4e287800
sha1h srd, srn = 5e280800
sha1su1 vrd.4s, vrn.4s = 5e281800
sha256su0 vrd.4s, vrn.4s = 5e282800
sha1c qrd, srn, vrs.4s = 5e000000
sha1p qrd, srn, vrs.4s = 5e001000
sha1m qrd, srn, vrs.4s = 5e002000
sha1su0 vrd.4s, vrn.4s, vrs.4s = 5e003000
sha256h qrd, qrn, vrs.4s = 5e004000
sha256h2 qrd, qrn, vrs.4s = 5e005000
sha256su1 vrd.4s, vrn.4s, vrs.4s = 5e006000
"""
# braa and its like take a modifier instead of a destination.
_BRANCHES: Final = {"braa": 0xD71F0800, "brab": 0xD71F0C00, "blraa": 0xD73F0800, "blrab": 0xD73F0C00}
_ATOMICS: Final = {
    "add": 0x0000, "clr": 0x1000, "eor": 0x2000, "set": 0x3000, "smax": 0x4000, "smin": 0x5000, "umax": 0x6000,
    "umin": 0x7000,
}  # fmt: skip
# Suffixes: the ordering, with the bits of an atomic instruction and of compare and swap; the width.
_ORDERINGS: Final = {"": (0, 0), "a": (1 << 23, 1 << 22), "l": (1 << 22, 1 << 15), "al": (3 << 22, 1 << 22 | 1 << 15)}
_WIDTHS: Final = (("b", "w", 0), ("h", "w", 1), ("", "w", 2), ("", "x", 3))
_CONDITIONS: Final = ("eq", "ne", "hs", "lo", "mi", "pl", "vs", "vc", "hi", "ls", "ge", "lt", "gt", "le", "al", "nv")
# Loads and stores with a signed offset of nine bits (FEAT_LRCPC2): size and opcode.
_UNSCALED: Final = (
    ("stlurb", "w", 0, 0), ("ldapurb", "w", 0, 1), ("ldapursb", "x", 0, 2), ("ldapursb", "w", 0, 3),
    ("stlurh", "w", 1, 0), ("ldapurh", "w", 1, 1), ("ldapursh", "x", 1, 2), ("ldapursh", "w", 1, 3),
    ("stlur", "w", 2, 0), ("ldapur", "w", 2, 1), ("ldapursw", "x", 2, 2),
    ("stlur", "x", 3, 0), ("ldapur", "x", 3, 1),
)  # fmt: skip


def _families() -> Iterator[Row]:
    """Yield the instructions whose names differ in one field."""
    for order, (atomic, swap) in _ORDERINGS.items():
        for width, file, size in _WIDTHS:
            template, bits = f"{file}s, {file}d, [base]", size << 30
            for name, opcode in _ATOMICS.items():
                yield Row(f"ld{name}{order}{width}", template, 0x38200000 | bits | atomic | opcode, 4)
                if order in {"", "l"}:
                    # Without a destination.
                    yield Row(f"st{name}{order}{width}", f"{file}s, [base]", 0x3820001F | bits | atomic | opcode, 4)
            yield Row(f"swp{order}{width}", template, 0x38208000 | bits | atomic, 4)
            yield Row(f"cas{order}{width}", template, 0x08A07C00 | bits | swap, 4)
    for name, file, size, opcode in _UNSCALED:
        for memory in ("[base]", "[base, nine]"):
            yield Row(name, f"{file}d, {memory}", 0x19000000 | size << 30 | opcode << 22, 4)
    for number, condition in enumerate(_CONDITIONS):
        yield Row(f"bc.{condition}", "label", 0x54000010 | number, 4)
    for name, value in _BRANCHES.items():
        yield Row(name, "xn, place", value, 4)


ASSEMBLY: Final = Assembly(
    table=(*rows(_TEXT), *_families()),
    kinds=_KINDS | {"place": choice(_X | {"sp": 31}, 0, "a 64-bit register (x0 to x30, sp)")},
    keystone=_KEYSTONE,
    outside=_OUTSIDE,
    registers=re.compile(r"[xwbhsdqvzp](?:[12]?[0-9]|3[01])|[xw]zr|w?sp|lr|fp|za\d*[hv]?"),
    same={"fp": "x29", "lr": "x30"},
    # `ret x30` is written `ret`, and `subs xzr, x0, x1` is written `cmp x0, x1`.
    dropped=lambda register, statement: register in {"xzr", "wzr"} or statement.split() == ["ret", register],
    unchecked=frozenset({"hint"}),
    sums=False,
)
