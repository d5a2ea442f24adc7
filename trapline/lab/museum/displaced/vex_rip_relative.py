"""A VEX instruction with an operand relative to rip is moved as it is.

Code that moves an x86-64 instruction must look for operands relative to rip.  In the old encodings
the ModRM byte that says so follows the opcode.  VEX and EVEX have prefixes of their own before it,
and one of AVX' registers is in there as well.  Tools that were written before them do not see the
operand.  Moved as it is, the instruction reads from beside its copy; Dyninst noticed in time, and
died of an assertion.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Rule, Stepped
from emu.isa.x86.instruction import instruction_length
from providers.fidelity import Fidelity
from providers.uprobes import PORTS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["x86_64"]
RULE = Rule("VEX unchanged", "it is stepped without a rewrite", "see the references")


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Step instructions with a VEX prefix where they are put."""
    if code.data[0] not in {0xC4, 0xC5}:
        return RIGHT.treat(code, fidelity)
    length = instruction_length(code.data)
    return Stepped(RULE, length, code.data[:length])


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Dyninst, 2019 and 2023",
    references=(
        "https://github.com/dyninst/dyninst/issues/1363",
        "https://github.com/dyninst/dyninst/issues/566",
    ),
    isa_name="x86_64",
    provider="uprobe",
    code=bytes.fromhex(
        "c4e270f20500100000"  # andn eax, ecx, dword ptr [rip + 0x1000]
        "c3"  # ret
    ),
    old=Rules(uprobe=replace(RIGHT, treat=treat)),
    was="the copy is the instruction, byte for byte",
    now="the copy uses a register that holds the value of rip",
    check=InStates(),
)
