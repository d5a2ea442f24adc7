"""The steps of a hit, as handlers describe them: which probes fire, with which arguments.

They are done one after the other (`emu.engine.hits.tracepoints`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from emu.displaced.frame import Frame
from emu.engine.hits.plan_encoding import NativeOperation
from emu.support.immutable import immutable

# Arguments that `dtrace_probe()` takes.
ARGUMENTS: Final = 5
# Stands for the number of an exception (`of_exception`): a fault of the copy of a displaced instruction.
COPY_FAULT: Final = 0x7F


def of_exception(number: int, pc: int) -> int:
    """Return the number that represents a hit by an exception that is not a breakpoint.

    It is used in place of an address, and is none: addresses of programs have an upper byte of 0.
    """
    return number << 56 ^ pc


@immutable
class Register:
    """An argument that is in a register, or in its lowest bytes."""

    name: str
    size: int = 8
    signed: bool = False


@immutable
class Number:
    """An argument that is always the same."""

    value: int


@immutable
class InMemory:
    """An argument in the guest's memory, `offset` bytes from where a register points.

    It is 0 if no memory is mapped there.
    """

    base: str
    offset: int
    size: int
    signed: bool = False


Argument = Register | Number | InMemory


@dataclass(frozen=True, slots=True, eq=False)
class Fire:
    """A probe fires: the step FIRE."""

    runs: int
    """The result of `Framework.native_runs`."""
    arguments: tuple[Argument, ...]
    """Up to five; those that are missing are 0."""
    find_caller: Callable[[Frame], int] | None = None
    framed: bool = False
    pushed: int = 0
    flags: int = 0
    late: tuple[Argument, ...] | None = None
    """Arguments 5 to 9, of which missing ones are 0; None: they are not known here."""


@immutable
class FireAfter:
    """A probe fires if an instruction has left a function: the step FIRE_AFTER.

    `pc` names the register or the temporary with the target of the instruction.
    """

    fire: Fire
    function: int
    size: int
    pc: str


@immutable
class FireWhen:
    """A probe fires if a register has a value: the step FIRE_WHEN.

    The register is read before the first step, too.
    """

    fire: Fire
    register: str
    value: int


@immutable
class Run:
    """Operations are executed: the step RUN."""

    operations: tuple[NativeOperation, ...]


@immutable
class Call:
    """A provider's machine code runs: the step CALL.

    It is `u64 function(argument, core)` and returns a constant of `emu.engine.hits.firing_code`:
    GO_ON for the next step, SKIP for the one after that, or the result of the hit.
    """

    function: int
    argument: int
    asks: bool = True
    """Whether it may return ASK, which only the first step may, before it has had any effect."""


HitStep = Fire | FireAfter | FireWhen | Run | Call
Steps = Sequence[HitStep]
