"""One tracer's function is exchanged for another, and a hart calls an address made of both.

On RISC-V a far call takes `auipc`, which has the upper part of the distance, and `jalr`, which has
the lower one.  A fetch may have four bytes at a time, so both words cannot be exchanged without a
race: a hart that has executed the old `auipc` comes to the new `jalr`.  That was one reason to stop
all harts.  Since then each function keeps its `auipc`, all tracers are entered by one place, and
only the second word is written.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders, Other

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux on RISC-V, dynamic ftrace: why it could not do without stop_machine() until 6.16",
    references=(
        "https://git.kernel.org/linus/b2137c3b6d7a",
        "https://lpc.events/event/16/contributions/1171/",
    ),
    isa_name="riscv64",
    provider="ftrace",
    code=bytes.fromhex(
        "97120000"  # auipc t0, 1
        "e7820210"  # jalr t0, t0, 0x100
        "13051500"  # addi a0, a0, 1
        "8280"  # c.jr ra
    ),
    old=Rules(method="write-sync"),
    was="both words are written, and then all harts fetch anew",
    now="the first word never changes, and the second is written with one store",
    check=InOrders(
        bytes.fromhex("97220000e7820220"),
        right="write-sync",
        mended=Other(bytes.fromhex("97120000e7820210130515008280"), 4, bytes.fromhex("e7820220")),
    ),
)
