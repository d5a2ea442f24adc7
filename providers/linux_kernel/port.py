"""The contract of an ISA's port for Linux kernels: the first and last instructions of functions.

To add an ISA write `providers/linux_kernel/<isa>.py` with a `Port` and list it in `PORTS`
(docs/adding-an-isa.md).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from emu.displaced.decision import Rule
from emu.displaced.plans import Operation
from emu.support.by_name import ByName
from emu.support.immutable import immutable

_SOURCE: Final = "this simulator"
NOP: Final = Rule("nop", "it does nothing", _SOURCE)
ARITHMETIC: Final = Rule("add to a register", "a register gets a sum", _SOURCE)
PUSH: Final = Rule("push", "a register goes onto the stack", _SOURCE)

Known = tuple[Rule, tuple[Operation, ...], int] | None


@immutable
class Port:
    """The text of a Linux kernel on one ISA."""

    nop: Callable[[bytes], int]
    """Length of the nop that starts some code; 0: it is not a nop."""
    landing: Callable[[bytes], int]
    """Length of the landing pad that starts some code; 0: it is not a landing pad."""
    pad: Callable[[bytes], int]
    """Length of ftrace's pad that starts some code, while ftrace is off; 0: it is not a pad."""
    returns: Callable[[bytes], bool]
    """Whether an instruction is a return."""
    more: Callable[[bytes], Known]
    """The effects of other instructions, beside the change of the pc, and their length."""


PORTS: Final[ByName[Port]] = ByName("providers.linux_kernel", ("riscv64", "aarch64", "x86_64"), "PORT")
