"""The breakpoint goes into the middle of an instruction, and changes what that one computes.

RISC-V instructions have two or four bytes, and only who has read all of them from the start of the
function knows where one begins.  FreeBSD's FBT tests every half-word instead.  The upper half of a
`lui` may be the two bytes of `c.jr ra`: it is taken for a return and patched, and the lui loads
another number; no probe ever fires there.  Linux' kprobes took such a place from their user, and
panicked, until they went through the function first.
"""

from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InFbt
from trapline.lab.museum.exhibit import Exhibit

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD on RISC-V, to this day; Linux kprobes on RISC-V before commit 87f48c7ccc73, 2021 to 2023",
    references=(
        "FreeBSD sys/cddl/dev/fbt/riscv/fbt_isa.c, check_c_ret() in fbt_provide_module_function()",
        "https://git.kernel.org/linus/87f48c7ccc73",
    ),
    isa_name="riscv64",
    provider="fbt",
    code=bytes.fromhex(
        "4111"  # c.addi sp, -0x10
        "06e4"  # c.sdsp ra, 8(sp)
        "37058280"  # lui a0, 0x80820
        "a260"  # c.ldsp ra, 8(sp)
        "4101"  # c.addi sp, 0x10
        "8280"  # c.jr ra
    ),
    old=Rules(fidelity=Fidelity.FREEBSD),
    was="any half-word equal to c.jr ra is a return",
    now="a half-word inside another instruction is not a return",
    check=InFbt(),
)
