"""Rules of the pid provider with two emulations that a colleague has added.

"Both work on my machine."  Each is wrong for some instructions, or in some states of the CPU.
"""

from dataclasses import replace

from emu.displaced.decision import Emulated, Rule
from emu.displaced.plans import Load, Plan, Set
from providers.fasttrap import PORTS

RIGHT = PORTS["i386"]
MINE = Rule("mine", "a colleague's emulation", "rules.py")

NAMES = "eax ecx edx ebx esp ebp esi edi".split()


def first(code):
    """jmp PLACE: eb and the distance in one byte, counted from the end of the instruction."""
    if code.data[0] != 0xEB:
        return None
    return Emulated(MINE, 2, Plan((Set("eip", "eip", 2 + code.data[1]),)))


def second(code):
    """pop REG: 58 to 5f."""
    if code.data[0] & 0xF8 != 0x58:
        return None
    register = NAMES[code.data[0] & 7]
    load = Load("%0", "esp", 0, 4)
    return Emulated(MINE, 1, Plan((load, Set(register, "%0"), Set("esp", "esp", 4), Set("eip", "eip", 1))))


def treat(code, fidelity):
    """Decide about an instruction: first the two of this file, then the package's own rules."""
    return first(code) or second(code) or RIGHT.treat(code, fidelity)


RULES = replace(RIGHT, treat=treat)
