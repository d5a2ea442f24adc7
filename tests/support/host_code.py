"""Execution of machine code by the host's own CPU, which nobody here wrote."""

from __future__ import annotations

import ctypes
import mmap
import platform
import sys

import pytest

native_host = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64", reason="the host is the oracle: x86-64 on Linux"
)


def execute(code, *arguments):
    """Call code with up to six arguments of 64 bits, and return the lower half of rax."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(code)
        view = ctypes.c_uint8.from_buffer(page)
        try:
            return ctypes.CFUNCTYPE(ctypes.c_uint32, *[ctypes.c_uint64] * len(arguments))(ctypes.addressof(view))(
                *arguments
            )
        finally:
            del view
