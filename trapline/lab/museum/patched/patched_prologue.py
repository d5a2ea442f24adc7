"""The function jumps back to an instruction that the patch has overwritten.

A jump or call to a trampoline takes five bytes, more than most instructions, so such a patch
displaces several.  They run elsewhere, one after another, and all is well until a branch of the
function itself goes to the second of them: it lands in the middle of the patch.  Loops that begin
right at the start of a function do so.  A breakpoint of one byte displaces exactly one instruction,
and nothing can jump into it.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, OutOfLine, Rule
from emu.isa.x86.instruction import instruction_lengths
from providers.fasttrap import PORTS
from providers.fidelity import Fidelity
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InRun
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["x86_64"]
RULE = Rule("prologue", "a jump to a trampoline overwrites them", "see the references")
# The bytes of a jump to a trampoline after its opcode, which the int3 replaces.
DISTANCE = bytes.fromhex("fbffff01")


def treat(code: Code, _fidelity: Fidelity) -> Decision:
    """Displace as many instructions as five bytes overwrite."""
    length = 0
    for each in instruction_lengths(code.data):
        length += each
        if length >= 5:
            break
    return OutOfLine(RULE, length, code.data[:length])


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="uftrace, full dynamic tracing on x86-64, 2019 and 2023",
    references=(
        "https://github.com/namhyung/uftrace/issues/281 (a jump to the fourth byte of a function of gcc)",
        "https://github.com/namhyung/uftrace/issues/1692",
    ),
    isa_name="x86_64",
    provider="pid",
    code=bytes.fromhex(
        "31c0"  # xor eax, eax
        "01f8"  # add eax, edi
        "ffcf"  # dec edi
        "75fa"  # jne 2
        "c3"  # ret
    ),
    old=Rules(pid=replace(RIGHT, treat=treat, breakpoint=lambda _length: b"\xcc" + DISTANCE)),
    was="five bytes are patched, and three instructions displaced",
    now="one byte is patched, and one instruction displaced",
    check=InRun(arguments=(4,)),
)
