"""A jump replaces several instructions, between two of which a thread sleeps.

An optimised kprobe replaces its breakpoint by a jump of five bytes, which covers several
instructions.  The dance of breakpoint, tail and first byte protects CPUs that come to the first
instruction.  It does not protect a thread that was preempted behind it: that continues in the
middle of the jump.  So the optimiser waits until every thread has been elsewhere, while the
breakpoint leads new ones around the bytes.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux on x86, optimised kprobes in kernels with preemption; the wait is what makes them right",
    references=(
        "Linux kernel/kprobes.c, `kprobe_optimizer()`",
        "https://docs.kernel.org/trace/kprobes.html",
    ),
    isa_name="x86_64",
    provider="kprobe",
    code=bytes.fromhex(
        "55"  # push rbp
        "4889e5"  # mov rbp, rsp
        "53"  # push rbx
        "89f8"  # mov eax, edi
        "5b"  # pop rbx
        "5d"  # pop rbp
        "c3"  # ret
    ),
    old=Rules(method="int3-first"),
    was="a breakpoint, the tail, the first byte, and all CPUs serialize after each",
    now="the same, once every thread has been seen outside these bytes",
    check=InOrders(bytes.fromhex("e900010000"), right="int3-quiesce"),
)
