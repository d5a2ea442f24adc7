"""What the callbacks ask of the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Handlers:
    """Functions of the engine.

    The first three answer DELIVER or HANDLED, `on_breakpoint` also with a plan.
    """

    on_trap: Callable[[int], int]
    """(Unicorn's number of the exception)."""
    on_breakpoint: Callable[[int], int]
    """(the address of the breakpoint, where the pc is)."""
    on_late: Callable[[int], int]
    """(that address): native code could not carry the plan out."""
    on_inside: Callable[[], None]
    """Take back what of the block comes after the instruction at the pc."""
