"""All CPUs are stopped while five nops become one jump, and one of them stands between the nops.

The site of a static probe is five nops of one byte each, which become a jump of five bytes while
all CPUs wait in a rendezvous.  A CPU comes to the rendezvous by an interrupt, and an interrupt may
come between any two instructions.  The CPU that was interrupted behind the first nop continues in
the middle of the jump: it executes the jump's distance.  One nop of five bytes has no middle.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders, Other

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD on x86, SDT since 2024, as its sources are",
    references=(
        "FreeBSD sdt_machdep.h for x86, `_SDT_ASM_PATCH_INSTR`, and sdt_machdep.c, `sdt_tracepoint_patch()`",
        "FreeBSD sys/kern/kern_sdt.c",
    ),
    isa_name="x86_64",
    provider="sdt",
    code=bytes.fromhex(
        "90"  # nop
        "90"  # nop
        "90"  # nop
        "90"  # nop
        "90"  # nop
        "8d4701"  # lea eax, [rdi + 1]
        "c3"  # ret
    ),
    old=Rules(method="rendezvous"),
    was="the site is five nops, and all CPUs are stopped while they are written",
    now="the site is one nop of five bytes",
    check=InOrders(
        bytes.fromhex("e900010000"),
        right="rendezvous",
        mended=Other(bytes.fromhex("0f1f4400008d4701c3"), 0, bytes.fromhex("e900010000")),
    ),
)
