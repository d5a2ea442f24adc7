"""All harts are stopped, and one of them continues between the two instructions of a patch.

A function that ftrace may trace begins with two nops, which become `auipc` and `jalr`: no single
instruction reaches far enough.  All harts were stopped while both were written.  But a hart is
stopped where it happens to be, and that may be between the two nops: it continues with a `jalr`
whose `auipc` it has never executed, and jumps to wherever `t0` pointed.  With kernel preemption a
thread can sleep there, too.  Since 2025 the `auipc` stays, and only the second word is written.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders, Other

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux on RISC-V, dynamic ftrace, until 6.16",
    references=(
        "http://lists.infradead.org/pipermail/linux-riscv/2025-July/074747.html",
        "https://git.kernel.org/linus/b2137c3b6d7a",
        "https://lpc.events/event/16/contributions/1171/",
    ),
    isa_name="riscv64",
    provider="ftrace",
    code=bytes.fromhex(
        "13000000"  # nop
        "13000000"  # nop
        "13051500"  # addi a0, a0, 1
        "8280"  # c.jr ra
    ),
    old=Rules(method="stop-machine"),
    was="both words are written while all harts are stopped",
    now="the first word never changes, and the second is written with one store",
    check=InOrders(
        bytes.fromhex("97120000e7820210"),
        right="write-sync",
        mended=Other(bytes.fromhex("97120000130000001305150082800000"), 4, bytes.fromhex("e7820210")),
    ),
)
