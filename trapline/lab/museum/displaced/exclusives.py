"""A probe between a load-exclusive and its store-exclusive keeps the loop from ending.

ldaxr reserves an address, stlxr stores only if the reservation still holds, and the loop around
them tries until it does.  A return from an exception ends the reservation.  A probe in between is
an exception in each round: the store never succeeds.  XNU's fasttrap and Linux' probes refuse the
exclusive instructions themselves, and Linux' kprobes look back for a sequence that has begun; who
forgets either hangs the program, as instrumenters and debuggers still do.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision
from providers.fasttrap import PORTS
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InRun
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["aarch64"]


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Decide without a look at what comes before."""
    return RIGHT.treat(replace(code, before=b""), fidelity)


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Frida's Stalker, 2024, and lldb, since 2023; XNU and Linux guard against it",
    references=(
        "https://github.com/frida/frida/issues/2769",
        "https://github.com/llvm/llvm-project/issues/60259",
        "XNU bsd/dev/arm64/disassembler.c; Linux arch/arm64/kernel/probes/decode-insn.c, is_probed_address_atomic()",
    ),
    isa_name="aarch64",
    provider="pid",
    code=bytes.fromhex(
        "e1fe5fc8"  # ldaxr x1, [x23]
        "21040091"  # add x1, x1, #1
        "e1fe02c8"  # stlxr w2, x1, [x23]
        "a2ffff35"  # cbnz w2, #0
        "c0035fd6"  # ret
    ),
    old=Rules(pid=replace(RIGHT, treat=treat)),
    was="the add gets a probe like any other",
    now="nothing between the two is probed",
    check=InRun(offset=4),
)
