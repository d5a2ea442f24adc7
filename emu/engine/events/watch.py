"""Watching a CPU instruction by instruction: what `Engine.running.watch` needs of Unicorn.

It is for the few instructions of a recording (`trapline.lab.step`).  The hook of memory accesses
makes every access slow, so it exists only while something is watched.  It also sees what the CPU
itself writes, such as the words that x86 pushes at an exception.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from emu.engine.qemu.hooks import ACCESS, WRITE, Hooks
from emu.support.words import WORD_MASK

# (whether it writes, physical address, size in bytes, value written)
Accessed = Callable[[bool, int, int, int], object]

_HOOK: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
)


class Watch:
    """One watcher, and the hook of what is accessed meanwhile."""

    def __init__(self, watcher: Callable[[], bool], accessed: Accessed, hooks: Hooks) -> None:
        self.watcher = watcher

        def access(_uc: int, kind: int, address: int, size: int, value: int, _data: int) -> None:
            accessed(kind == WRITE, address, size, value & WORD_MASK >> 64 - 8 * size)

        self._hooks = hooks
        self._handle = hooks.add(ACCESS, _HOOK(access))

    def end(self) -> None:
        """Remove the hook."""
        self._hooks.remove(self._handle)
