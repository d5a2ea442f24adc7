"""A branch is written over a nop, and another CPU goes on executing the nop.

The Arm architecture lets a nop become a branch while another CPU executes it: that CPU executes the
one or the other.  It does not say for how long.  Until a CPU performs a context synchronization
event, it may execute what it had fetched.  A jump label was switched with the store and the
maintenance of caches alone, so a caller could not rely on other CPUs to have noticed.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux on arm64, jump labels, 2018 to 2024",
    references=("https://git.kernel.org/linus/cfb00a357864",),
    isa_name="aarch64",
    provider="jump label",
    code=bytes.fromhex(
        "1f2003d5"  # nop
        "00040091"  # add x0, x0, #1
        "c0035fd6"  # ret
    ),
    old=Rules(method="write-nosync"),
    was="the word is stored, and the caches are cleaned and invalidated",
    now="then every CPU is interrupted, which is a context synchronization event",
    check=InOrders(bytes.fromhex("40000014"), right="write-sync"),
)
