"""A jump of five bytes is stored over a nop of five bytes, and another CPU executes a mixture.

One store writes all of the jump, so it looks atomic.  To loads of data it is; to the fetch of
instructions the manuals promise nothing of the kind, and the errata of many processors tell of
unexpected results.  A system that patches multi-byte instructions first writes a breakpoint of one
byte, then the tail, then the first byte, and makes all CPUs serialize in between.
"""

from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.exhibit import Exhibit
from trapline.lab.museum.orders import InOrders

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="x86 processors since the P6: Unsynchronized Cross-Modifying Code",
    references=(
        "Intel Celeron Processor Specification Update, W108",
        "Linux arch/x86/kernel/alternative.c, `text_poke_bp_batch()`",
    ),
    isa_name="x86_64",
    provider="jump label",
    code=bytes.fromhex(
        "0f1f440000"  # nop dword ptr [rax + rax]
        "8d4701"  # lea eax, [rdi + 1]
        "c3"  # ret
    ),
    old=Rules(method="write-sync"),
    was="the five bytes are written with one store, and then all CPUs serialize",
    now="a breakpoint, the tail, the first byte, and all CPUs serialize after each",
    check=InOrders(bytes.fromhex("e900010000"), right="int3-first"),
)
