"""Hooks of Unicorn, added by the C call: the binding would wrap callbacks in Python code."""

from __future__ import annotations

import ctypes
from typing import Any

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.engine.cpu import Cpu
from emu.engine.errors import EngineError


class Hooks:
    """The hooks of one engine.

    `data` is the address that each callback gets as its last argument.
    """

    def __init__(self, cpu: Cpu, data: int) -> None:
        self._reference = cpu.reference
        self._data = ctypes.c_void_p(data)
        self._kept: list[Any] = []

    def add(
        self,
        kind: int,
        callback: Any,
        begin: int = 1,
        end: int = 0,
        *,
        instruction: int | None = None,
        data: int | None = None,
    ) -> int:
        """Add a hook for [begin, end], or for all addresses if it is empty; return its handle.

        `data` replaces the common last argument.  Raises `EngineError`.
        """
        self._kept.append(callback)
        hook = ctypes.c_size_t()
        extra = () if instruction is None else (ctypes.c_int(instruction),)
        error = uclib.uc_hook_add(
            self._reference,
            ctypes.byref(hook),
            kind,
            ctypes.cast(callback, ctypes.c_void_p),
            self._data if data is None else ctypes.c_void_p(data),
            ctypes.c_uint64(begin),
            ctypes.c_uint64(end),
            *extra,
        )
        if error:
            raise EngineError(f"unicorn refused a hook: {unicorn.UcError(error)}")
        return int(hook.value)

    def remove(self, handle: int) -> None:
        """Remove a hook, whose callback stays alive: Unicorn may be calling it."""
        uclib.uc_hook_del(self._reference, ctypes.c_size_t(handle))
