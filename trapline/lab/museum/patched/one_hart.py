"""A breakpoint is written, and only the hart that wrote it is told to fetch anew.

`fence.i` orders the stores of one hart with its own fetches, and says nothing of other harts; nor
do they fetch anew because of an interrupt.  FBT stores its `ebreak` and executes one `fence.i`.  A
hart that has the old instruction in its cache passes the probe without a trap after it is enabled,
and one that has the breakpoint takes it after it is disabled.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD on RISC-V, FBT and kinst, as their sources are",
    references=(
        "FreeBSD sys/cddl/dev/fbt/riscv/fbt_isa.c, `fbt_patch_tracepoint()`",
        "https://github.com/riscv/riscv-isa-manual/issues/650",
    ),
    isa_name="riscv64",
    provider="fbt",
    code=bytes.fromhex(
        "0111"  # c.addi sp, -0x20
        "06ec"  # c.sdsp ra, 0x18(sp)
        "e260"  # c.ldsp ra, 0x18(sp)
        "0561"  # c.addi16sp sp, 0x20
        "8280"  # c.jr ra
    ),
    old=Rules(method="write-once"),
    was="a store and a fence.i of the hart that patches",
    now="then all harts are interrupted, and each executes a fence.i",
    check=InOrders(bytes.fromhex("0290"), right="write-sync", offset=2),
)
