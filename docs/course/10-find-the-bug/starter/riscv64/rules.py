"""Rules of the pid provider with two emulations that a colleague has added.

"Both work on my machine."  Each is wrong for some instructions, or in some states of the CPU.
"""

from dataclasses import replace

from emu.displaced.decision import Displaced, Emulated, Rule
from emu.displaced.plans import Clear, Plan, Set
from providers.fasttrap import PORTS

RIGHT = PORTS["riscv64"]
MINE = Rule("mine", "a colleague's emulation", "rules.py")

# x0 is the constant 0, which a plan writes as "".
NAMES = " ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6".split(" ")


def first(code):
    """auipc REG, NUMBER: the number is in bits 31 to 12, and counts 4 KiB."""
    insn = Displaced(int.from_bytes(code.data[:4], "little"), code.address)
    if insn.bits(6, 0) != 0x17 or not insn.bits(11, 7):
        return None
    target = Set(NAMES[insn.bits(11, 7)], "pc", insn.bits(31, 12) << 12)
    return Emulated(MINE, 4, Plan((target, Set("pc", "pc", 4))))


def second(code):
    """jalr LINK, OFFSET(BASE): the lowest bit of the target is cleared."""
    insn = Displaced(int.from_bytes(code.data[:4], "little"), code.address)
    if insn.bits(6, 0) != 0x67 or insn.bits(14, 12) or not insn.bits(11, 7):
        return None
    link = Set(NAMES[insn.bits(11, 7)], "pc", 4)
    target = Set("%0", NAMES[insn.bits(19, 15)], insn.signed(31, 20))
    return Emulated(MINE, 4, Plan((link, target, Clear("%0", "%0", 1), Set("pc", "%0"))))


def treat(code, fidelity):
    """Decide about an instruction: first the two of this file, then the package's own rules."""
    return first(code) or second(code) or RIGHT.treat(code, fidelity)


RULES = replace(RIGHT, treat=treat)
