"""The assembly language of RV64GC, all of it: keystone does not know RISC-V.

An instruction has the length that its name says: `addi` has four bytes, `c.addi` two.  A number as
the target of a branch is a distance in bytes, as the disassembler prints it.

Source: RISC-V unprivileged specification, chapters 2 to 16 and 26; privileged specification,
chapter 3.3 (sret, mret, wfi, sfence.vma) and table 2.2 and so on (numbers of the CSRs).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Final

from emu.isa import disassembly
from emu.isa.assembly import Assembly, Operand, Row, choice, immediate, number_in, rows
from emu.isa.disassembly import CS_ARCH_RISCV, CS_MODE_RISCV64
from emu.isa.riscv64 import instruction as i
from emu.isa.riscv64.registers import GENERAL
from emu.support.did_you_mean import did_you_mean

_X: Final = (
    {name: number for number, name in enumerate(GENERAL)} | {f"x{number}": number for number in range(32)} | {"fp": 8}
)
_FLOATING: Final = (
    *(f"ft{n}" for n in range(8)), "fs0", "fs1", *(f"fa{n}" for n in range(8)), *(f"fs{n}" for n in range(2, 12)),
    *(f"ft{n}" for n in range(8, 12)),
)  # fmt: skip
_F: Final = {name: number for number, name in enumerate(_FLOATING)} | {f"f{number}": number for number in range(32)}
_ROUNDING: Final = {"rne": 0, "rtz": 1, "rdn": 2, "rup": 3, "rmm": 4, "dyn": 7}
_DYNAMIC: Final = 7 << 12
_ORDER: Final = "wroi"


def _few(names: dict[str, int], what: str, shift: int) -> Operand:
    """Return a kind of operand that is one of registers 8 to 15."""
    return choice({name: number - 8 for name, number in names.items() if 8 <= number < 16}, shift, what)


def _not_zero(shift: int, *, sp: bool = True) -> Operand:
    some = {name: number for name, number in _X.items() if number and (sp or number != 2)}
    return choice(some, shift, "a register that this instruction takes")


def _fence(shift: int) -> Operand:
    def read(text: str, _address: int) -> int:
        letters = text.lower()
        if text == "0":
            return 0
        if not letters or set(letters) - set(_ORDER) or len(set(letters)) != len(letters):
            raise ValueError(f"'{text}' is not made of the letters i, o, r, w")
        return sum(1 << _ORDER.index(letter) for letter in letters) << shift

    return Operand(read)


@cache
def _csrs() -> Mapping[str, int]:
    """Return the numbers of the CSRs by the names that the disassembler has for them."""
    found: dict[str, int] = {}
    for number in range(1 << 12):
        code = (0x1073 | number << 20).to_bytes(4, "little")  # csrw
        told = next(disassembly.decoder((CS_ARCH_RISCV, CS_MODE_RISCV64)).disasm_lite(code, 0, 1), None)
        name = told[3].split(",")[0] if told and told[2] == "csrw" else ""
        found.setdefault(name, number)
    return found | {"fflags": 1, "frm": 2, "fcsr": 3}


def _csr(text: str, _address: int) -> int:
    number = _csrs().get(text.lower())
    if number is not None:
        return number << 20
    try:
        return i.CSR_NUMBER.write(number_in(text))
    except ValueError:
        raise ValueError(f"'{text}' is not a CSR{did_you_mean(text.lower(), _csrs())}") from None


def _c_lui(text: str, _address: int) -> int:
    # Written as lui's: 20 bits, of which those of negative numbers are set.
    value = number_in(text)
    if value < 0:
        raise ValueError(f"'{text}' is negative: write 20 bits")
    return i.CI_NOT_ZERO.write(value - (1 << 20) if value >= 1 << 19 else value)


def _bare(text: str, _address: int) -> int:
    if number_in(text):
        raise ValueError("the offset must be 0")
    return 0


_INTEGER: Final = "a register (x0 to x31, or zero, ra, sp, ...)"
_FLOAT: Final = "a floating-point register (f0 to f31, or ft0, fs0, fa0, ...)"
_EIGHT: Final = "one of the registers that this instruction takes: s0, s1, a0 to a5"
_EIGHT_FLOAT: Final = "one of the registers that this instruction takes: fs0, fs1, fa0 to fa5"
_KINDS: Final = {
    "rd": choice(_X, 7, _INTEGER),
    "rs1": choice(_X, 15, _INTEGER),
    "rs2": choice(_X, 20, _INTEGER),
    "fd": choice(_F, 7, _FLOAT),
    "fs1": choice(_F, 15, _FLOAT),
    "fs2": choice(_F, 20, _FLOAT),
    "fs3": choice(_F, 27, _FLOAT),
    "rm": Operand(choice(_ROUNDING, 12, "a rounding mode").read, default=_DYNAMIC),
    "imm": immediate(i.I),
    "store": immediate(i.S),
    "branch": immediate(i.B),
    "jump": immediate(i.J),
    "upper": immediate(i.U),
    "shift": immediate(i.SHIFT),
    "shiftw": immediate(i.SHIFT_WORD),
    "csr": Operand(_csr),
    "value": immediate(i.CSR_VALUE),
    "zero": Operand(_bare),
    "pred": _fence(24),
    "succ": _fence(20),
    # Compressed instructions.
    "cd": _not_zero(7),
    "cdl": _not_zero(7, sp=False),
    "c2": _not_zero(2),
    "cx": choice(_X, 7, _INTEGER),
    "cs2": choice(_X, 2, _INTEGER),
    "cf": choice(_F, 7, _FLOAT),
    "cfs2": choice(_F, 2, _FLOAT),
    "cp1": _few(_X, _EIGHT, 7),
    "cp2": _few(_X, _EIGHT, 2),
    "cfp2": _few(_F, _EIGHT_FLOAT, 2),
    "ci": immediate(i.CI),
    "cin": immediate(i.CI_NOT_ZERO),
    "cshift": immediate(i.C_SHIFT),
    "clui": Operand(_c_lui),
    "c16": immediate(i.C_ADDI16SP),
    "c4": immediate(i.C_ADDI4SPN),
    "lwsp": immediate(i.C_LWSP),
    "ldsp": immediate(i.C_LDSP),
    "swsp": immediate(i.C_SWSP),
    "sdsp": immediate(i.C_SDSP),
    "cw": immediate(i.C_WORD),
    "cdw": immediate(i.C_DOUBLE),
    "cjump": immediate(i.CJ),
    "cbranch": immediate(i.CB),
}

_TEXT: Final = """
lui rd, upper = 00000037
auipc rd, upper = 00000017
jal rd, jump = 0000006f
jal jump = 000000ef
j jump = 0000006f
jalr rd, imm(rs1) = 00000067
jalr rd, rs1, imm = 00000067
jalr rd, rs1 = 00000067
jalr rs1 = 000000e7
jr rs1 = 00000067
jr imm(rs1) = 00000067
ret = 00008067
beq rs1, rs2, branch = 00000063
bne rs1, rs2, branch = 00001063
blt rs1, rs2, branch = 00004063
bge rs1, rs2, branch = 00005063
bltu rs1, rs2, branch = 00006063
bgeu rs1, rs2, branch = 00007063
bgt rs2, rs1, branch = 00004063
ble rs2, rs1, branch = 00005063
bgtu rs2, rs1, branch = 00006063
bleu rs2, rs1, branch = 00007063
beqz rs1, branch = 00000063
bnez rs1, branch = 00001063
bltz rs1, branch = 00004063
bgez rs1, branch = 00005063
bgtz rs2, branch = 00004063
blez rs2, branch = 00005063
lb rd, imm(rs1) = 00000003
lh rd, imm(rs1) = 00001003
lw rd, imm(rs1) = 00002003
ld rd, imm(rs1) = 00003003
lbu rd, imm(rs1) = 00004003
lhu rd, imm(rs1) = 00005003
lwu rd, imm(rs1) = 00006003
sb rs2, store(rs1) = 00000023
sh rs2, store(rs1) = 00001023
sw rs2, store(rs1) = 00002023
sd rs2, store(rs1) = 00003023
addi rd, rs1, imm = 00000013
slti rd, rs1, imm = 00002013
sltiu rd, rs1, imm = 00003013
xori rd, rs1, imm = 00004013
ori rd, rs1, imm = 00006013
andi rd, rs1, imm = 00007013
slli rd, rs1, shift = 00001013
srli rd, rs1, shift = 00005013
srai rd, rs1, shift = 40005013
addiw rd, rs1, imm = 0000001b
slliw rd, rs1, shiftw = 0000101b
srliw rd, rs1, shiftw = 0000501b
sraiw rd, rs1, shiftw = 4000501b
nop = 00000013
li rd, imm = 00000013
mv rd, rs1 = 00000013
not rd, rs1 = fff04013
neg rd, rs2 = 40000033
negw rd, rs2 = 4000003b
sext.w rd, rs1 = 0000001b
seqz rd, rs1 = 00103013
snez rd, rs2 = 00003033
sltz rd, rs1 = 00002033
sgtz rd, rs2 = 00002033
fence = 0ff0000f
fence pred, succ = 0000000f
fence.tso = 8330000f
fence.i = 0000100f
pause = 0100000f
ecall = 00000073
ebreak = 00100073
unimp = c0001073
uret = 00200073
sret = 10200073
mret = 30200073
wfi = 10500073
sfence.vma = 12000073
sfence.vma rs1 = 12000073
sfence.vma rs1, rs2 = 12000073
csrrw rd, csr, rs1 = 00001073
csrrs rd, csr, rs1 = 00002073
csrrc rd, csr, rs1 = 00003073
csrrwi rd, csr, value = 00005073
csrrsi rd, csr, value = 00006073
csrrci rd, csr, value = 00007073
csrr rd, csr = 00002073
csrw csr, rs1 = 00001073
csrs csr, rs1 = 00002073
csrc csr, rs1 = 00003073
csrwi csr, value = 00005073
csrsi csr, value = 00006073
csrci csr, value = 00007073
rdcycle rd = c0002073
rdtime rd = c0102073
rdinstret rd = c0202073
frcsr rd = 00302073
fscsr rd, rs1 = 00301073
fscsr rs1 = 00301073
frrm rd = 00202073
fsrm rd, rs1 = 00201073
fsrm rs1 = 00201073
fsrmi rd, value = 00205073
fsrmi value = 00205073
frflags rd = 00102073
fsflags rd, rs1 = 00101073
fsflags rs1 = 00101073
fsflagsi rd, value = 00105073
fsflagsi value = 00105073
flw fd, imm(rs1) = 00002007
fld fd, imm(rs1) = 00003007
fsw fs2, store(rs1) = 00002027
fsd fs2, store(rs1) = 00003027
fcvt.s.d fd, fs1, rm = 40100053
fcvt.d.s fd, fs1, rm = 42000053
fmv.x.w rd, fs1 = e0000053
fmv.w.x fd, rs1 = f0000053
fmv.x.d rd, fs1 = e2000053
fmv.d.x fd, rs1 = f2000053
c.nop = 0001
c.addi cd, cin = 0001
c.nop ci = 0001
c.addiw cd, ci = 2001
c.li cd, ci = 4001
c.addi16sp sp, c16 = 6101
c.addi4spn cp2, sp, c4 = 0000
c.lui cdl, clui = 6001
c.srli cp1, cshift = 8001
c.srai cp1, cshift = 8401
c.andi cp1, ci = 8801
c.sub cp1, cp2 = 8c01
c.xor cp1, cp2 = 8c21
c.or cp1, cp2 = 8c41
c.and cp1, cp2 = 8c61
c.subw cp1, cp2 = 9c01
c.addw cp1, cp2 = 9c21
c.j cjump = a001
c.beqz cp1, cbranch = c001
c.bnez cp1, cbranch = e001
c.slli cd, cshift = 0002
c.fld cfp2, cdw(cp1) = 2000
c.lw cp2, cw(cp1) = 4000
c.ld cp2, cdw(cp1) = 6000
c.fsd cfp2, cdw(cp1) = a000
c.sw cp2, cw(cp1) = c000
c.sd cp2, cdw(cp1) = e000
c.fldsp cf, ldsp(sp) = 2002
c.lwsp cd, lwsp(sp) = 4002
c.ldsp cd, ldsp(sp) = 6002
c.fsdsp cfs2, sdsp(sp) = a002
c.swsp cs2, swsp(sp) = c002
c.sdsp cs2, sdsp(sp) = e002
c.jr cd = 8002
c.jalr cd = 9002
c.mv cd, c2 = 8002
c.add cd, c2 = 9002
c.ebreak = 9002
c.unimp = 0000
"""
# Names that differ in one field: template -> the name and the bits.
_REGISTERS: Final = (
    ("add", 0x33), ("sub", 0x40000033), ("sll", 0x1033), ("slt", 0x2033), ("sltu", 0x3033), ("xor", 0x4033),
    ("srl", 0x5033), ("sra", 0x40005033), ("or", 0x6033), ("and", 0x7033),
    ("addw", 0x3B), ("subw", 0x4000003B), ("sllw", 0x103B), ("srlw", 0x503B), ("sraw", 0x4000503B),
    ("mul", 0x2000033), ("mulh", 0x2001033), ("mulhsu", 0x2002033), ("mulhu", 0x2003033), ("div", 0x2004033),
    ("divu", 0x2005033), ("rem", 0x2006033), ("remu", 0x2007033),
    ("mulw", 0x200003B), ("divw", 0x200403B), ("divuw", 0x200503B), ("remw", 0x200603B), ("remuw", 0x200703B),
)  # fmt: skip
_ATOMICS: Final = {
    "amoadd": 0x00, "amoswap": 0x01, "amoxor": 0x04, "amoor": 0x08, "amoand": 0x0C, "amomin": 0x10, "amomax": 0x14,
    "amominu": 0x18, "amomaxu": 0x1C, "sc": 0x03,
}  # fmt: skip
_ORDERINGS: Final = {"": 0, ".rl": 1, ".aq": 2, ".aqrl": 3}
# Floating point: the name, its bits without the format, and the template.
_FLOATS: Final = (
    ("fadd", 0x00000053, "fd, fs1, fs2, rm"), ("fsub", 0x08000053, "fd, fs1, fs2, rm"),
    ("fmul", 0x10000053, "fd, fs1, fs2, rm"), ("fdiv", 0x18000053, "fd, fs1, fs2, rm"),
    ("fsqrt", 0x58000053, "fd, fs1, rm"),
    ("fsgnj", 0x20000053, "fd, fs1, fs2"), ("fsgnjn", 0x20001053, "fd, fs1, fs2"),
    ("fsgnjx", 0x20002053, "fd, fs1, fs2"),
    ("fmin", 0x28000053, "fd, fs1, fs2"), ("fmax", 0x28001053, "fd, fs1, fs2"),
    ("feq", 0xA0002053, "rd, fs1, fs2"), ("flt", 0xA0001053, "rd, fs1, fs2"), ("fle", 0xA0000053, "rd, fs1, fs2"),
    ("fclass", 0xE0001053, "rd, fs1"),
    ("fmadd", 0x00000043, "fd, fs1, fs2, fs3, rm"), ("fmsub", 0x00000047, "fd, fs1, fs2, fs3, rm"),
    ("fnmsub", 0x0000004B, "fd, fs1, fs2, fs3, rm"), ("fnmadd", 0x0000004F, "fd, fs1, fs2, fs3, rm"),
)  # fmt: skip
_INTEGERS: Final = {"w": 0, "wu": 1, "l": 2, "lu": 3}
# fmv, fabs and fneg of one register: a sign injection whose two sources are the same.
_SIGNS: Final = {"fmv": 0x20000053, "fneg": 0x20001053, "fabs": 0x20002053}


def _families() -> Iterator[Row]:
    """Yield the instructions whose names differ in one field."""
    yield from (Row(name, "rd, rs1, rs2", value, 4) for name, value in _REGISTERS)
    for letter, width in (("w", 2), ("d", 3)):
        for suffix, ordering in _ORDERINGS.items():
            bits = 0x2F | width << 12 | ordering << 25
            for memory in ("(rs1)", "zero(rs1)"):
                yield Row(f"lr.{letter}{suffix}", f"rd, {memory}", bits | 0x02 << 27, 4)
                for name, number in _ATOMICS.items():
                    yield Row(f"{name}.{letter}{suffix}", f"rd, rs2, {memory}", bits | number << 27, 4)
    for letter, precision in (("s", 0), ("d", 1)):
        for name, value, template in _FLOATS:
            yield Row(f"{name}.{letter}", template, value | precision << 25, 4)
        for integer, number in _INTEGERS.items():
            # A word always fits a double: no rounding, and its mode is 0.
            exact = letter == "d" and integer in {"w", "wu"}
            yield Row(f"fcvt.{integer}.{letter}", "rd, fs1, rm", 0xC0000053 | precision << 25 | number << 20, 4)
            conversion = 0xD0000053 | precision << 25 | number << 20
            if exact:
                yield Row(f"fcvt.{letter}.{integer}", "fd, rs1", conversion, 4)
            yield Row(f"fcvt.{letter}.{integer}", "fd, rs1, rm", conversion, 4)
        for name, value in _SIGNS.items():
            yield Row(f"{name}.{letter}", "fd, fsame", value | precision << 25, 4)


def _same_twice(text: str, address: int) -> int:
    read: Callable[[str, int], int] = _KINDS["fs1"].read
    return read(text, address) | _KINDS["fs2"].read(text, address)


ASSEMBLY: Final = Assembly(
    table=(*rows(_TEXT), *_families()),
    kinds=_KINDS | {"fsame": Operand(_same_twice)},
    registers=re.compile(rf"{'|'.join(sorted((*_X, *_F), key=len, reverse=True))}"),
    same={f"x{number}": name for number, name in enumerate(GENERAL)}
    | {f"f{number}": name for number, name in enumerate(_FLOATING)}
    | {"fp": "s0"},
    distances=True,
)
