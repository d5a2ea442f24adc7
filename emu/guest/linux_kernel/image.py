"""A kernel in its form for memory; `emu.guest.linux_kernel.files.image_file` reads one from a file."""

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
    """The text that `uname -r` prints."""
    read: Callable[[], bytes] = field(repr=False)
    """Returns the bytes for memory, in one piece."""
    base: int = 0
    """Physical address of its first byte, on x86-64; 0: the address of the boot protocol."""
    entry: int = 0
    """Physical address of its first instruction, on x86-64."""
    setup: bytes = b""
    """The setup header of a bzImage, from offset 0x1f1 on."""
    known_digest: str = ""
    """The digest, if it is known without reading."""

    @cached_property
    def data(self) -> bytes:
        """The bytes for memory."""
        return self.read()

    @cached_property
    def digest(self) -> str:
        """The name of this kernel in caches."""
        return self.known_digest or hashlib.sha256(self.data).hexdigest()
