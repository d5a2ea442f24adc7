"""The functions that kinst excludes on every ISA.

Source: FreeBSD sys/cddl/dev/kinst/kinst.c.
"""

from __future__ import annotations

from typing import Final

from emu.displaced.decision import Rule
from providers.fbt.exclusions import EXCLUSIONS as FBT_EXCLUSIONS
from providers.fbt.port import Exclusion

_KINST: Final = "FreeBSD sys/cddl/dev/kinst/kinst.c"
EXCLUSIONS: Final = (
    *FBT_EXCLUSIONS,
    Exclusion(Rule("kinst_*", "kinst itself, in a kernel that has it built in", _KINST), prefix="kinst_"),
    Exclusion(
        Rule("context switch", "it changes stacks, or wraps DTrace's fault handler", _KINST),
        names=frozenset({"cpu_switch", "trap_check"}),
    ),
)
