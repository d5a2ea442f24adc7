"""The error of a guest that cannot continue, with its registers and its stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from emu.guest.base import GuestError


class KernelPanicError(GuestError):
    """The guest kernel panicked, or its CPU could not continue.

    `str()` is one line; `report()` adds the registers and the symbolised stack.
    """

    def __init__(self, reason: str, registers: Mapping[str, int], stack: Sequence[str]) -> None:
        where = f" at {stack[0]}" if stack else ""
        super().__init__(f"guest kernel panic: {reason}{where}")
        self.reason = reason
        self.registers = dict(registers)
        self.stack = tuple(stack)

    def report(self) -> str:
        """Return several lines: the reason, the registers four to a line, a frame per line."""
        cells = [f"{name:>6} {value:016x}" for name, value in self.registers.items()]
        rows = ["  ".join(cells[start : start + 4]) for start in range(0, len(cells), 4)]
        return "\n".join((str(self), *rows, *(f"    {frame}" for frame in self.stack)))
