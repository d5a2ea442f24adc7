"""Every breakpoint is taken to be four bytes long.

RISC-V has two: ebreak, and c.ebreak of two bytes, which takes the place of compressed instructions.
A handler that continues at pc + 4 whichever it was skips the instruction after a compressed one, or
lands in the middle of the one after it.  The architecture's own conformance test stepped over its
ebreak by four, until it was compiled with compressed instructions; gdb wrote the short breakpoint
where there were none.
"""

from dataclasses import replace

from emu.displaced.decision import Displaced, DisplacedRow, Otherwise
from emu.displaced.plans import Plan, Set
from emu.isa import RISCV64
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = RISCV64.stub


def row(right: DisplacedRow) -> DisplacedRow:
    """Return a row that continues four bytes later."""
    decide = right.what
    if right.name != "c.sdsp ra, imm(sp)" or isinstance(decide, Otherwise):
        return right

    def plan(insn: Displaced) -> Plan:
        *operations, _ = decide(insn).operations
        return Plan((*operations, Set("pc", "pc", 4)))

    return replace(right, what=plan)


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="RISC-V trap handlers, among them riscv-arch-test's, 2020",
    references=(
        "https://github.com/riscv/riscv-arch-test/issues/121",
        "https://github.com/riscvarchive/riscv-binutils-gdb/issues/175 (the other way round)",
    ),
    isa_name="riscv64",
    provider="fbt",
    code=bytes.fromhex(
        "06e4"  # c.sdsp ra, 8(sp)
        "0505"  # c.addi a0, 1
        "8280"  # c.jr ra
    ),
    old=Rules(displaced=replace(RIGHT, rows=tuple(map(row, RIGHT.rows)))),
    was="after the emulated c.sdsp the pc is four bytes further",
    now="after the emulated c.sdsp the pc is two bytes further",
    check=InStates(),
)
