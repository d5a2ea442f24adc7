"""Rules of the pid provider with two emulations that a colleague has added.

"Both work on my machine."  Each is wrong for some instructions, or in some states of the CPU.
"""

from dataclasses import replace

from emu.displaced.decision import Emulated, Rule
from emu.displaced.plans import Load, Plan, Set
from providers.fasttrap import PORTS

RIGHT = PORTS["x86_64"]
MINE = Rule("mine", "a colleague's emulation", "rules.py")

NAMES = "rax rcx rdx rbx rsp rbp rsi rdi".split()


def first(code):
    """lea REG, [rip+DISTANCE]: 48 8d, a byte with the register, the distance in four bytes."""
    data = code.data
    if data[:2] != b"\x48\x8d" or data[2] & 0xC7 != 0x05:
        return None
    register = NAMES[data[2] >> 3 & 7]
    distance = int.from_bytes(data[3:7], "little", signed=True)
    return Emulated(MINE, 7, Plan((Set(register, "rip", distance), Set("rip", "rip", 7))))


def second(code):
    """pop REG: 58 to 5f."""
    if code.data[0] & 0xF8 != 0x58:
        return None
    register = NAMES[code.data[0] & 7]
    return Emulated(MINE, 1, Plan((Load("%0", "rsp"), Set(register, "%0"), Set("rsp", "rsp", 8), Set("rip", "rip", 1))))


def treat(code, fidelity):
    """Decide about an instruction: first the two of this file, then the package's own rules."""
    return first(code) or second(code) or RIGHT.treat(code, fidelity)


RULES = replace(RIGHT, treat=treat)
