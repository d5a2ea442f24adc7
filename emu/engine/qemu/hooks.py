"""Hooks of Unicorn, added by the C call: the binding would wrap callbacks in Python code."""

from __future__ import annotations

import ctypes
from typing import Any, Final

import unicorn
from unicorn.unicorn_py3.unicorn import uclib

from emu.engine.errors import EngineError
from emu.engine.qemu.cpu import Cpu

# Kinds of hooks (enum uc_hook_type of unicorn.h), which may be combined.
BLOCK: Final = unicorn.UC_HOOK_BLOCK
CODE: Final = unicorn.UC_HOOK_CODE
EXCEPTION: Final = unicorn.UC_HOOK_INTR
INVALID: Final = unicorn.UC_HOOK_INSN_INVALID
INSTRUCTION: Final = unicorn.UC_HOOK_INSN
TLB_FILL: Final = unicorn.UC_HOOK_TLB_FILL
ACCESS: Final = unicorn.UC_HOOK_MEM_READ | unicorn.UC_HOOK_MEM_WRITE
# The kind of a write, in the callback of ACCESS.
WRITE: Final = unicorn.UC_MEM_WRITE


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
