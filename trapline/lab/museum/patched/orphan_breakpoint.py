"""A process forks while its last probe is disabled, and the child keeps the breakpoint.

A child's memory is a copy, with the breakpoints of the pid provider, which removes them from the
child by its table of the parent's tracepoints.  On FreeBSD the memory is copied first, and the
provider is told at the end of the fork.  If the probe is disabled between the two, the breakpoint
leaves the parent's memory and the table, and only the child still has it: the child dies of a
SIGTRAP when it comes there.  illumos holds one lock over the copy and the removal, which a consumer
needs to disable a probe.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders
from trapline.lab.race.methods import FORK

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD, the pid provider, as its sources are",
    references=(
        "FreeBSD sys/kern/kern_fork.c, `fork1()` and `do_fork()`",
        "FreeBSD fasttrap.c, `fasttrap_fork()` and `fasttrap_tracepoint_disable()`",
    ),
    isa_name="x86_64",
    provider="pid",
    code=bytes.fromhex(
        "8d4701"  # lea eax, [rdi + 1]
        "c3"  # ret
    ),
    old=Rules(method="write-sync"),
    was="a probe may be disabled between the copy of the memory and the removal of its breakpoints",
    now="no process forks from before the first write until after the last one",
    check=InOrders(bytes.fromhex("cc"), right="stop-machine", scenario=FORK),
)
