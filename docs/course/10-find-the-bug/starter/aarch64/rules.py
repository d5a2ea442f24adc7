"""Rules of the pid provider with two emulations that a colleague has added.

"Both work on my machine."  Each is wrong for some instructions, or in some states of the CPU.
"""

from dataclasses import replace

from emu.displaced.decision import Displaced, Emulated, Rule
from emu.displaced.plans import Branch, Check, Compare, Plan, Set
from providers.fasttrap import PORTS

RIGHT = PORTS["aarch64"]
MINE = Rule("mine", "a colleague's emulation", "rules.py")

NAMES = [*(f"x{number}" for number in range(29)), "fp", "lr"]


def first(code):
    """adrp REG, PAGE: the distance is in pages."""
    insn = Displaced(int.from_bytes(code.data[:4], "little"), code.address)
    if insn.word & 0x9F000000 != 0x90000000 or insn.bits(4, 0) == 31:
        return None
    pages = insn.signed(23, 5) * 4 + insn.bits(30, 29)
    return Emulated(MINE, 4, Plan((Set(NAMES[insn.bits(4, 0)], "pc", pages << 12), Set("pc", "pc", 4))))


def second(code):
    """cbz REG, PLACE: bit 31 says whether it is an X register, or the lower half of one."""
    insn = Displaced(int.from_bytes(code.data[:4], "little"), code.address)
    if insn.word & 0x7F000000 != 0x34000000 or insn.bits(4, 0) == 31:
        return None
    test = Check(Compare.EQ, NAMES[insn.bits(4, 0)])
    return Emulated(MINE, 4, Plan((Branch((test,), 4 * insn.signed(23, 5), 4),)))


def treat(code, fidelity):
    """Decide about an instruction: first the two of this file, then the package's own rules."""
    return first(code) or second(code) or RIGHT.treat(code, fidelity)


RULES = replace(RIGHT, treat=treat)
