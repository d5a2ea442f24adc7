"""The emulated loop tests the count before it decrements it.

`loop` decrements rcx and jumps unless it is zero then.  Fasttrap emulates it the other way round:
it looks, and then decrements.  A probed loop runs once more than it should, and what begins at
zero, which means 2 to the power of 64 rounds, ends at once.
"""

from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InRun
from trapline.lab.museum.exhibit import Exhibit

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Solaris, illumos and FreeBSD fasttrap on x86, to this day",
    references=(
        "FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c, FASTTRAP_T_LOOP in fasttrap_pid_probe()",
    ),
    isa_name="x86_64",
    provider="pid",
    code=bytes.fromhex(
        "31c0"  # xor eax, eax
        "ffc0"  # inc eax
        "e2fc"  # loop 2
        "c3"  # ret
    ),
    old=Rules(fidelity=Fidelity.FREEBSD),
    was="jump if the count is not zero; then decrement it",
    now="decrement the count; then jump if it is not zero",
    check=InRun(arguments=(0, 0, 0, 4), offset=4),
    glue="fasttrap",
)
