"""Register 31 of a system register access is taken for the stack pointer.

A64 has one number, 31, for the zero register and for sp; the instruction decides which.  In mrs and
msr it is the zero register.  The kernel's saved registers are an array whose entry 31 is sp, and
code that emulated trapped instructions used the number from the instruction as an index.  So `mrs
xzr, ctr_el0`, which does nothing, overwrote the program's stack pointer with the answer.  Code that
emulates displaced instructions keeps such an array, and falls for it as easily.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Displaced, Emulated, Rule
from emu.displaced.plans import Plan, Set
from emu.isa.aarch64.registers import REGISTERS
from providers.fasttrap import PORTS
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["aarch64"]
RULE = Rule("mrs", "register 31 is an index like the others", "see the references")
SAVED = tuple(register.name for register in REGISTERS.registers[:32])
# The kernel's answer: lines of 64 bytes.
CTR_EL0 = 0x8444_C004


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Emulate mrs of ctr_el0 with the register's number as an index."""
    insn = Displaced(int.from_bytes(code.data[:4], "little"), code.address)
    if insn.bits(31, 5) != 0xD53B0020 >> 5:
        return RIGHT.treat(code, fidelity)
    return Emulated(RULE, 4, Plan((Set(SAVED[insn.bits(4, 0)], "", CTR_EL0), Set("pc", "pc", 4))))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux on arm64 before commit 6c23e2ff7013 and what followed it, 2017",
    references=("https://git.kernel.org/linus/6c23e2ff7013",),
    isa_name="aarch64",
    provider="pid",
    code=bytes.fromhex(
        "3f003bd5"  # mrs xzr, ctr_el0
        "c0035fd6"  # ret
    ),
    old=Rules(pid=replace(RIGHT, treat=treat)),
    was="the instruction is emulated, and register 31 is the saved sp",
    now="a copy of the instruction runs out of line",
    check=InStates(),
)
