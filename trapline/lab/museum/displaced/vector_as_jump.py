"""A vector instruction is taken for a jump, a call or a return.

VEX and EVEX put a prefix before the opcode, and give opcodes new meanings: 7f behind the prefix is
a move, and on its own it is `jg`.  The decoder of Linux keeps the byte behind the prefix as the
opcode, and uprobes compare it with the opcodes of old.  So `vmovdqu [rdi], ymm0`, which is how
memory is copied today, is simulated as a jump by a distance of nothing: the program continues, and
nothing was stored.  `vpor` becomes `jmp`, `vpsubsb` a call, and `vcmpps` is left in its slot, for a
return needs no putting right.  (The CPU that is emulated has no AVX: here the instruction faults,
and with the old rule it does not.)
"""

from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux uprobes on x86, up to 7.3 at least",
    references=("Linux arch/x86/kernel/uprobes.c, branch_setup_xol_ops(), which asks OPCODE1(insn)",),
    isa_name="x86_64",
    provider="uprobe",
    code=bytes.fromhex(
        "c5fe7f07"  # vmovdqu ymmword ptr [rdi], ymm0
        "c3"  # ret
    ),
    old=Rules(fidelity=Fidelity.LINUX),
    was="the opcode is 7f: a conditional jump, by an immediate that does not exist",
    now="an instruction with a VEX prefix is stepped, whatever its opcode means without the prefix",
    check=InStates(),
)
