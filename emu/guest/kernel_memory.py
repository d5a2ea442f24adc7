"""The memory of a guest's kernel, as the CPU accesses it."""

from __future__ import annotations

from emu.engine.engine import Engine
from emu.isa.base import Isa
from emu.support.words import BadAddressError


class KernelMemory:
    """Memory at the kernel's addresses; addresses of user programs are refused."""

    isa: Isa
    engine: Engine

    def load(self, address: int, size: int) -> bytes:
        """Read kernel memory.  Raises `BadAddressError`."""
        if not self.isa.is_kernel_address(address):
            raise BadAddressError(address)
        return self.engine.read(address, size)

    def store(self, address: int, data: bytes) -> None:
        """Write the kernel's data.  Raises `BadAddressError`."""
        if not self.isa.is_kernel_address(address):
            raise BadAddressError(address)
        self.engine.memory.write(address, data)
