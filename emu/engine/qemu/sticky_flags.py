"""Exceptions that floating-point operations have accrued, on a CPU whose QEMU keeps them apart.

Without machine code the hook is here (`emu.engine.qemu.code_hooks`); `emu.isa.x86.sticky_flags`
says why.
"""

from __future__ import annotations

from emu.engine.memory.memory import Memory
from emu.isa.unicorn_model import Accruing
from emu.support.words import BadAddressError


class Accrued:
    """What one CPU has accrued: `env` is the address of its state."""

    def __init__(self, accruing: Accruing, env: int, memory: Memory) -> None:
        self._accruing = accruing
        self._env = env
        self._memory = memory

    def asked(self, address: int) -> bool:
        """Return whether the instruction at an address reads or replaces it."""
        try:
            return self._accruing.found(lambda at: self._memory.read(at, 1)[0], address)
        except BadAddressError:
            return False

    def merge(self) -> None:
        """Move it to the registers that instructions read."""
        self._accruing.merge(self._env)
