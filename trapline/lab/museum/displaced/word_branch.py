"""A branch with an operand-size prefix is simulated as if the prefix were not there.

In 32-bit code `jmpw`, `callw` and their kind leave sixteen bits of the pc: the program continues in
the first 64 KiB, and a call stores two bytes.  The first simulation of branches tested only the
opcode, and jumped by the full offset.  Since then an instruction of this kind has no probe: no
program uses them, and in 64-bit code the CPUs of different vendors disagree about them.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Emulated
from emu.displaced.plans import Operation, Plan, Set
from providers.fidelity import Fidelity
from providers.uprobes import PORTS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["i386"]


def longer(operation: Operation) -> Operation:
    """Count the prefix's byte in."""
    if isinstance(operation, Set) and operation.source == "eip":
        return operation._replace(offset=operation.offset + 1)
    return operation


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Take the prefix for one that changes nothing."""
    if code.data[:1] != b"\x66":
        return RIGHT.treat(code, fidelity)
    found = RIGHT.treat(replace(code, data=code.data[1:]), fidelity)
    if not isinstance(found, Emulated):
        return RIGHT.treat(code, fidelity)
    return replace(found, plan=Plan(tuple(map(longer, found.plan.operations))))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux uprobes on x86, 2014, until 3.16",
    references=(
        'Linux: uprobes/x86: Refuse to attach uprobe to "word-sized" branch insns (May 2014)',
        "arch/x86/kernel/uprobes.c, branch_setup_xol_ops()",
    ),
    isa_name="i386",
    provider="uprobe",
    code=bytes.fromhex(
        "66eb01"  # jmp 4
        "90"  # nop
        "c3"  # ret
    ),
    old=Rules(uprobe=replace(RIGHT, treat=treat)),
    was="jmpw jumps by its whole offset",
    now="jmpw is not probed",
    check=InStates(),
    glue="linux-uprobes",
)
