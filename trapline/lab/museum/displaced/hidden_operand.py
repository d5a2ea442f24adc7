"""The register that replaces rip is one that the instruction uses implicitly.

A copy of an instruction with an operand relative to rip gets a register instead, which must be one
that it does not use.  Solaris' fasttrap, and FreeBSD's, takes rax unless the ModRM byte names it.
But rax is an implicit operand of cmpxchg, mul and div: they compute with an address.  Linux'
uprobes chose the same, and changed to rsi, rdi or rbx in 2014; a comment of its source lists the
implicit operands.
"""

from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Solaris, illumos and FreeBSD fasttrap on amd64, to this day; Linux uprobes before 3.16, 2014",
    references=(
        "FreeBSD sys/cddl/contrib/opensolaris/uts/intel/dtrace/fasttrap_isa.c, fasttrap_tracepoint_init()",
        "Linux arch/x86/kernel/uprobes.c, riprel_analyze()",
    ),
    isa_name="x86_64",
    provider="pid",
    code=bytes.fromhex(
        "0fb10d00100000"  # cmpxchg dword ptr [rip + 0x1000], ecx
        "c3"  # ret
    ),
    old=Rules(fidelity=Fidelity.FREEBSD),
    was="rax replaces rip, since the ModRM byte names rcx",
    now="rsi replaces rip: no instruction with such an operand uses it implicitly",
    check=InStates(),
)
