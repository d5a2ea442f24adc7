"""A compressed move is simulated as a jump.

c.jr and c.mv differ in one field: c.jr has 0 where c.mv names the register it copies from.  The masks by which Linux'
RISC-V probes knew c.jr and c.jalr left that field out, so c.mv, one of the most frequent instructions there are, was
simulated as a jump to whatever its target register held, and c.add as a call.
"""

from dataclasses import replace

from emu.displaced import Displaced
from emu.isa.riscv64.plans import c_jump
from providers.uprobes import PORTS
from providers.uprobes.port import Simulated
from trapline.lab.check.museum import Exhibit
from trapline.lab.check.rules import Rules
from trapline.lab.check.shown import InStates

RIGHT = PORTS["riscv64"]


def analyze(code, address):
    """Simulate a jump where quadrant and function say so, whatever the second register."""
    insn = Displaced(int.from_bytes(code[:2], "little"), address)
    if insn.word & 0xE003 == 0x8002 and insn.bits(11, 7):
        return Simulated("c.jr", 2, c_jump(insn))
    return RIGHT.analyze(code, address)


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux kprobes and uprobes on RISC-V before commit b2d473a6019e, 2021 to 2023",
    references=("https://git.kernel.org/linus/b2d473a6019e",),
    isa_name="riscv64",
    provider="uprobe",
    code=bytes.fromhex(
        "2e85"  # c.mv a0, a1
        "8280"  # c.jr ra
    ),
    old=Rules(uprobe=replace(RIGHT, analyze=analyze)),
    was="whatever looks like c.jr without its second register is c.jr",
    now="c.jr has no second register",
    check=InStates(),
)
