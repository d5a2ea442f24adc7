"""A reader of this process's memory, at addresses that may not be mapped.

The system copies the bytes, and refuses with EFAULT what a plain load would crash on: write(2) to a
pipe (POSIX; on Linux, macOS, and below qemu-user).
"""

from __future__ import annotations

import ctypes
import os
from typing import Final

# Bytes that a pipe takes without blocking (POSIX: at least 512; Linux and macOS: 4096 and more).
_CHUNK: Final = 4096


class Reader:
    """A reader of memory; `close` it after use."""

    def __init__(self) -> None:
        self._out, self._in = os.pipe()
        self._write = ctypes.CDLL(None, use_errno=True).write
        self._write.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t]
        self._write.restype = ctypes.c_ssize_t

    def close(self) -> None:
        """Close the pipe."""
        os.close(self._in)
        os.close(self._out)

    def read(self, address: int, size: int) -> bytes:
        """Return the bytes at an address, fewer where the mapping ends."""
        found = b""
        while len(found) < size and 0 < address < 1 << 63:
            wanted = min(size - len(found), _CHUNK - address % _CHUNK)
            written = self._write(self._in, address, wanted)
            if written <= 0:
                break
            found += os.read(self._out, written)
            address += written
        return found

    def word(self, address: int) -> int | None:
        """Return the 64-bit word at an address, None if it cannot be read."""
        data = self.read(address, 8)
        return int.from_bytes(data, "little") if len(data) == 8 else None
