"""The addresses of C functions, as machine code and Unicorn's structures take them."""

from __future__ import annotations

import ctypes
from typing import Any


def function_address(function: Any) -> int:
    """Return the address of a function of ctypes: of a library's, or of a callback; 0: NULL."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
