"""FBT patches the instruction after the one that it searches for.

The scan for the instruction that opens the frame (stp or sub) used to leave its loop by a flag. The
loop advanced before it tested the flag, so the probe went to the next word.  When that breakpoint
is hit, the handler answers with the word that it displaced, here `mov x29, sp`. The stub emulates
stp, ldp, sub, nop, b and ret; of anything else it leaves the pc alone, and arm64's trap code does
not look at its answer.  So the breakpoint is hit again, and again: the report has one probe of pf,
hit once, and 8,893,079 drops.
"""

from dataclasses import replace

from emu.isa.aarch64.traps import BRK_DTRACE
from providers.fbt import PORTS
from providers.fbt.port import Function, ScanResult
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InFbt
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["aarch64"]


def scan(function: Function) -> ScanResult:
    """Find what the right scan finds, and patch what comes after it."""
    entry, *returns = RIGHT.scan(function).sites
    offset = entry.address + 4 - function.address
    word = int.from_bytes(function.code[offset : offset + 4], "little")
    late = entry._replace(address=entry.address + 4, patch=BRK_DTRACE.to_bytes(4, "little"), saved=word)
    return ScanResult((late, *returns))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD 14.0-BETA4 (commit 980746e5cb26), 2023",
    references=("https://github.com/freebsd/freebsd-src/pull/855",),
    isa_name="aarch64",
    provider="fbt",
    code=bytes.fromhex(
        "fd7bbfa9"  # stp x29, x30, [sp, #-0x10]!
        "fd030091"  # mov x29, sp
        "00040091"  # add x0, x0, #1
        "fd7bc1a8"  # ldp x29, x30, [sp], #0x10
        "c0035fd6"  # ret
    ),
    old=Rules(fbt=replace(RIGHT, scan=scan)),
    was="the entry probe goes to the word after the stp",
    now="the entry probe goes to the stp",
    check=InFbt(arguments=(41,)),
    glue="fbt",
)
