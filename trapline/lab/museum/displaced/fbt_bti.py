"""A landing pad precedes the instruction at which FBT puts its probe.

With Branch Target Identification a function that is called through a pointer begins with `bti`.  A
`brk` in its place raises no Branch Target Exception: Arm's manual names BRK, HLT, PACIASP and
PACIBSP beside BTI as what may stand there.  But the kind of the branch (PSTATE.BTYPE) is saved with
the pc, and unless the handler clears it, the instruction behind the bti raises that exception.  FBT
leaves the bti as it is.  FreeBSD marks assembly functions for FBT with a nop, which had to be their
first instruction: once `bti c` stands before it, a scan that does not step over it finds no frame
being opened either, and such functions lose their probes.
"""

from dataclasses import replace

from providers.fbt import PORTS
from providers.fbt.port import Function, ScanResult
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InFbt
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["aarch64"]
UNKNOWN = bytes(4)


def scan(function: Function) -> ScanResult:
    """Scan as if a bti were an instruction like any other."""
    return RIGHT.scan(replace(function, code=UNKNOWN + function.code[4:]))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="FreeBSD on arm64 before commit b5876847acfe",
    references=(
        "https://cgit.freebsd.org/src/commit/?id=b5876847acfeae2dd3a655cde8cdf6145aed16d8",
        "https://reviews.freebsd.org/D42078 (landing pads in assembly functions)",
        "Arm Architecture Reference Manual for A-profile, C6.2, BTI and BRK (SetBTypeCompatible)",
    ),
    isa_name="aarch64",
    provider="fbt",
    code=bytes.fromhex(
        "5f2403d5"  # bti c
        "1f2003d5"  # nop
        "00040091"  # add x0, x0, #1
        "c0035fd6"  # ret
    ),
    old=Rules(fbt=replace(RIGHT, scan=scan)),
    was="the first instruction is the one that the symbol points at",
    now="a bti that comes first is skipped, and never patched",
    check=InFbt(arguments=(41,)),
)
