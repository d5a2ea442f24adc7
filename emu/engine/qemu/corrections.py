"""Instructions that the host executes where Unicorn would do it wrong, without machine code.

`emu.engine.qemu.code_hooks_code` does the same in machine code.
"""

from __future__ import annotations

from collections.abc import Callable

from emu.engine.memory.memory import Memory
from emu.engine.qemu.cpu import Cpu
from emu.isa.unicorn_model import Corrections
from emu.support.words import BadAddressError


class Corrected:
    """The corrections of one CPU: `correct(address)` makes one; 0: Unicorn does it right."""

    def __init__(self, rules: Corrections, cpu: Cpu, memory: Memory, correct: Callable[[int], int]) -> None:
        self._rules = rules
        self._cpu = cpu
        self._memory = memory
        self._correct = correct

    def asked(self, address: int) -> bool:
        """Return whether the instruction at an address is one."""
        try:
            return self._rules.found(self._fetch, address)
        except BadAddressError:
            return False

    def reached(self, address: int) -> None:
        """Execute the instruction at an address, if it is one, and leave the block behind it."""
        if self.asked(address) and self._rules.needed(self._cpu.env, self._fetch, address) and self._correct(address):
            self._cpu.leave_block()

    def _fetch(self, address: int) -> int:
        return self._memory.read(address, 1)[0]
