"""A kernel as it goes into memory; `emu.guest.linux_kernel.image_files` reads one from a file."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class KernelImage:
    """A kernel, unpacked."""

    isa: str
    release: str
    """What `uname -r` prints."""
    read: Callable[[], bytes] = field(repr=False)
    """Returns what goes into memory, in one piece."""
    base: int = 0
    """Physical address of its first byte, on x86-64; 0: where the boot protocol says."""
    entry: int = 0
    """Physical address of its first instruction, on x86-64."""
    setup: bytes = b""
    """The setup header of a bzImage, from offset 0x1f1 on."""
    known_digest: str = ""
    """The digest, where it is known without reading."""

    @cached_property
    def data(self) -> bytes:
        """What goes into memory."""
        return self.read()

    @cached_property
    def digest(self) -> str:
        """What stands for this kernel in caches."""
        return self.known_digest or hashlib.sha256(self.data).hexdigest()
