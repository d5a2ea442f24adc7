"""The flag that single-steps a copy leaks into what a probed pushf saves.

Uprobes on x86 run a copy of most instructions with the trap flag set, which stops the CPU after
one.  `pushf` stores the flags, so the program finds a trap flag on its stack that it never set.  If
it restores them later with `popf`, the CPU traps after each of its instructions and the program
dies of SIGTRAP.  The commit that made the flag's handling right otherwise says itself that this is
left.  Kprobes correct the word on the stack, and so does this package.
"""

from dataclasses import replace

from emu.displaced.decision import Code, Decision, Stepped
from providers.fidelity import Fidelity
from providers.uprobes import PORTS
from trapline.lab.check.cpu.rules_under_test import Rules
from trapline.lab.museum.checks import InStates
from trapline.lab.museum.exhibit import Exhibit

RIGHT = PORTS["x86_64"]


def treat(code: Code, fidelity: Fidelity) -> Decision:
    """Step pushf like any other instruction."""
    found = RIGHT.treat(code, fidelity)
    return replace(found, pushes_flags=False) if isinstance(found, Stepped) else found


EXHIBIT = Exhibit(
    __file__,
    __doc__,
    system="Linux uprobes on x86, since 2012",
    references=("https://git.kernel.org/linus/9bd1190a11c9 (its last paragraph)",),
    isa_name="x86_64",
    provider="uprobe",
    code=bytes.fromhex(
        "9c"  # pushfq
        "58"  # pop rax
        "c3"  # ret
    ),
    old=Rules(uprobe=replace(RIGHT, treat=treat)),
    was="the flags that the copy pushed stay as they are",
    now="the trap flag is cleared in the pushed flags, unless the program had set it",
    check=InStates(),
)
