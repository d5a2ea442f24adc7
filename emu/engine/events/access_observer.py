"""Looking at every access to memory, and at every block of code, of one engine.

Unicorn calls a Python function each time, so code runs some hundred times slower meanwhile.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final, Self

from emu.engine.engine import Engine
from emu.engine.qemu.hooks import ACCESS, BLOCK, WRITE

# (whether it writes, physical address, size in bytes)
Accessed = Callable[[bool, int, int], object]
# (address, size in bytes)
Entered = Callable[[int, int], object]

_ACCESS: Final = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int, ctypes.c_int64, ctypes.c_void_p
)
_BLOCK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class Observer:
    """Calls functions while it is entered (`with`)."""

    def __init__(
        self, engine: Engine, *, accessed: Accessed | None = None, entered: Entered | None = None,
        code: tuple[int, int] = (1, 0),
    ) -> None:  # fmt: skip
        """`code`: the first and the last address of the blocks to be seen; all, if it is empty."""
        self._engine = engine
        self._accessed = accessed
        self._entered = entered
        self._code = code
        self._handles: list[int] = []

    def __enter__(self) -> Self:
        accessed, entered = self._accessed, self._entered
        if accessed is not None:

            def access(_uc: int, kind: int, address: int, size: int, _value: int, _data: int) -> None:
                accessed(kind == WRITE, address, size)

            self._handles.append(self._engine.observe(ACCESS, _ACCESS(access)))
        if entered is not None:

            def block(_uc: int, address: int, size: int, _data: int) -> None:
                entered(address, size)

            self._handles.append(self._engine.observe(BLOCK, _BLOCK(block), *self._code))
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            self._engine.observe_no_more(handle)
        self._handles.clear()
