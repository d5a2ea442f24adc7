"""The C library of this process, with the types of the functions that are called."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from functools import cache
from typing import Any


@cache
def libc() -> Any:
    """Return the C library."""
    library = ctypes.CDLL(None)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = (
        ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
    )  # fmt: skip
    library.munmap.argtypes = (ctypes.c_void_p, ctypes.c_size_t)
    library.mprotect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return library


def forget_instructions(address: int, size: int) -> None:
    """Make the CPU read the instructions at an address again: code was written there.

    The function is the compiler's, and macOS has one of its own.  Without either nothing is done.
    """
    start, end = ctypes.c_void_p(address), ctypes.c_void_p(address + size)
    with suppress(OSError, AttributeError):
        libc().sys_icache_invalidate(start, ctypes.c_size_t(size))
        return
    with suppress(OSError, AttributeError):
        ctypes.CDLL("libgcc_s.so.1")["__clear_cache"](start, end)
