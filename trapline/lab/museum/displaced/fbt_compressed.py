"""FBT sees 32-bit instructions only, and compilers use the others.

FBT's first RISC-V port looked for `sd ra, imm(sp)` and `ret` as 32-bit words.  Once the kernel was
compiled with the C extension nearly every function saved ra with `c.sdsp` and returned with `c.jr
ra`.  Nothing crashed: the probes were just not there.  A scan that finds them must also write a
breakpoint as short as the instruction, and the stub must know how far to advance.
"""

from dataclasses import replace

from providers.fbt import PORTS
from providers.fbt.port import Function, ScanResult
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InFbt
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["riscv64"]


def scan(function: Function) -> ScanResult:
    """Find 32-bit instructions; a function without an entry site has no return sites."""
    sites = tuple(site for site in RIGHT.scan(function).sites if len(site.patch) == 4)
    return ScanResult(sites if sites and not sites[0].roffset else ())


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD before r338444, 2018",
    references=("https://svnweb.freebsd.org/base?view=revision&revision=338444",),
    isa_name="riscv64",
    provider="fbt",
    code=bytes.fromhex(
        "4111"  # c.addi sp, -0x10
        "06e4"  # c.sdsp ra, 8(sp)
        "0505"  # c.addi a0, 1
        "a260"  # c.ldsp ra, 8(sp)
        "4101"  # c.addi sp, 0x10
        "8280"  # c.jr ra
    ),
    old=Rules(fbt=replace(RIGHT, scan=scan)),
    was="sd ra and ret are looked for as 32-bit words",
    now="c.sdsp ra and c.jr ra are looked for as well, and patched with c.ebreak",
    check=InFbt(arguments=(41,)),
)
