"""A 32-bit literal load is simulated by a 64-bit load.

Kprobes on arm64 simulate `ldr wt, label`, for a copy of it elsewhere would load from elsewhere.
For eight years the simulation loaded 64 bits and threw the upper half away.  On a big-endian kernel
the upper half is the word that was asked for: the register got the one after it.  On a
little-endian one, as here, the value is right, but four bytes too many are read: where the literal
is the last word of a mapping, the simulation faults and the instruction does not.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Displaced, Emulated, Rule
from emu.displaced.plans import Clear, Load, Plan, Set
from providers.fasttrap import PORTS
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["aarch64"]
RULE = Rule("ldr wt, label", "it loads eight bytes", "see the references")
UPPER = 0xFFFF_FFFF_0000_0000


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Load eight bytes and keep four."""
    insn = Displaced(int.from_bytes(code.data[:4], "little"), code.address)
    if insn.bits(31, 24) != 0x18:
        return RIGHT.treat(code, fidelity)
    load = Load("%0", "pc", insn.signed(23, 5) * 4, 8)
    return Emulated(RULE, 4, Plan((load, Clear(f"x{insn.bits(4, 0)}", "%0", UPPER), Set("pc", "pc", 4))))


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux kprobes on arm64 before commit 50f813e57601, 2016 to 2024",
    references=("https://git.kernel.org/linus/50f813e57601",),
    isa_name="aarch64",
    provider="pid",
    code=bytes.fromhex(
        "e07f0318"  # ldr w0, #0x6ffc; the last word of a page, and no page after it
        "c0035fd6"  # ret
    ),
    old=Rules(pid=replace(RIGHT, treat=treat)),
    was="eight bytes are loaded, whatever the width of the register",
    now="the number of bytes loaded is that of the instruction",
    check=InStates(),
)
