"""The emulated jle asks for both of its conditions where one is enough.

`jle` jumps if the zero flag is set, or if sign and overflow differ.  When kprobes learnt to emulate
conditional jumps, the two were combined by "and": the jump was missed for everything that is less
and not equal, and its opposite, `jg`, taken.  A kernel with a probe on such a jump went the wrong
way, for more than a year.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Emulated, Rule
from emu.displaced.plans import Branch, Check, Compare, Plan
from providers.fidelity import Fidelity
from providers.uprobes import PORTS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["x86_64"]
RULE = Rule("jle", "it jumps if both conditions hold", "see the references")
# Numbers of the two conditions.
EQUAL, LESS = 4, 12


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Simulate a short jle by both conditions."""
    if code.data[0] != 0x7E:
        return RIGHT.treat(code, fidelity)
    distance = int.from_bytes(code.data[1:2], "little", signed=True)
    tests = tuple(Check(Compare.FLAGS, right=number) for number in (EQUAL, LESS))
    return Emulated(RULE, 2, Plan((Branch(tests, 2 + distance, 2),)))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux kprobes on x86 before commit 8924779df820, 2021 to 2022",
    references=("https://git.kernel.org/linus/8924779df820",),
    isa_name="x86_64",
    provider="uprobe",
    code=bytes.fromhex(
        "7e01"  # jle 3
        "90"  # nop
        "c3"  # ret
    ),
    old=Rules(uprobe=replace(RIGHT, treat=treat)),
    was="jle jumps if equal and less",
    now="jle jumps if equal or less",
    check=InStates(),
    glue="linux-uprobes",
)
