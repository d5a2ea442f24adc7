"""A listener whose firings machine code can serve, too."""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

from emu.native import available
from emu.native.builder import Module
from emu.native.link import Linked
from trapline.lab.check.cpu.listener import Listener


@cache
def _fired() -> Any:
    """Return a function that counts a firing: u64 fired(count, arguments, core)."""
    module = Module()
    f = module.function("fired", 3)
    count = f.parameters[0]
    f.store(count, f.add(f.load(count), 1))
    f.ret()
    linked = Linked(module.compiled("listener"))
    return linked, linked.address("fired")


class CountingListener(Listener):
    """Counts firings, in Python and in machine code; only for Python's firings the probe is known."""

    def __init__(self) -> None:
        super().__init__()
        self._pair = (ctypes.c_uint64 * 2)()
        self._count = ctypes.c_uint64()
        self._runs = (ctypes.c_uint64 * 2)()
        if available():
            _, function = _fired()
            self._pair[:] = [function, ctypes.addressof(self._count)]
            self._runs[:] = [1, ctypes.addressof(self._pair)]

    @property
    def counted(self) -> int:
        """The number of firings in machine code."""
        return self._count.value

    def native_runs(self, probe_id: int) -> int:
        """Return the machine code for firings of any probe (`Framework.native_runs`)."""
        del probe_id
        return ctypes.addressof(self._runs) if self._runs[0] else 0
