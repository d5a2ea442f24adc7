"""A compressed move is simulated as a jump.

c.jr and c.mv differ in one field: c.jr has 0 where c.mv names the register it copies from.  The
masks by which Linux' RISC-V probes knew c.jr and c.jalr had one of that field's five bits.  So
every other c.mv, one of the most frequent instructions there are, was simulated as a jump to
whatever its target register held, and every other c.add as a call.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Displaced, Emulated, Rule
from emu.isa.riscv64.plans import c_jump
from providers.fidelity import Fidelity
from providers.uprobes import PORTS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["riscv64"]
RULE = Rule("c.jr", "it reads one bit of five", "see the references")


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Look at one bit of the second register's five, as the masks f007 did."""
    insn = Displaced(int.from_bytes(code.data[:2], "little"), code.address)
    if insn.word & 0xF007 in {0x8002, 0x9002} and insn.bits(11, 7):
        return Emulated(RULE, 2, c_jump(insn))
    return RIGHT.treat(code, fidelity)


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux kprobes and uprobes on RISC-V before commit b2d473a6019e, 2021 to 2023",
    references=("https://git.kernel.org/linus/b2d473a6019e",),
    isa_name="riscv64",
    provider="uprobe",
    code=bytes.fromhex(
        "3285"  # c.mv a0, a2
        "8280"  # c.jr ra
    ),
    old=Rules(uprobe=replace(RIGHT, treat=treat)),
    was="an encoding whose second register is even is c.jr (mask f007)",
    now="an encoding whose second register is zero is c.jr (mask f07f)",
    check=InStates(),
    glue="linux-uprobes",
)
