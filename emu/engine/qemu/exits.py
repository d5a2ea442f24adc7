"""Emulated instructions: Unicorn cannot translate them, or would read state of the host.

Before the translator decodes an instruction, it tests whether its address is an exit: a place where
emu_start ends, with the pc there and the CPU halted. Exits are kept in a tree; if it has one entry,
the translator calls the tree's function for comparing keys, once for each instruction that it
translates. That function is replaced here by the ISA's own, which decodes the instruction
(`UnicornModel.emulated`). Translated code has no additional cost.

Source: unicorn v2.1.4 include/uc_priv.h (uc_addr_is_exit), glib_compat/gtree.c (struct _GTree).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from emu.engine.errors import EngineError
from emu.engine.qemu.cpu import Cpu
from emu.engine.qemu.layout import ADVICE, UC_EXITS, UC_INVALIDATE, word

# An address that no code has.
_SENTINEL: Final = 0x5AB1_7E57_0DDB_A110
# struct _GTree: the root, then the function; struct _GTreeNode begins with the key.
_COMPARE: Final = 8
# The results of the function: equal, so that the address is an exit, or different.
_EXIT, _NO_EXIT = 0, 1
_ON_INVALIDATE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_size_t)
_ON_COMPARE: Final = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def install(cpu: Cpu, emulated: Any, keep: Any) -> None:
    """Make the translator call `emulated`, and make emu_start call `keep` when it ends.

    Both are addresses of C functions, which must stay valid.  Raises `EngineError`.
    """
    cpu.uc.ctl_set_exits([_SENTINEL])
    tree = word(cpu.handle + UC_EXITS)
    if word(word(word(tree))) != _SENTINEL:
        raise EngineError(f"this build of unicorn keeps its exits elsewhere; {ADVICE}")
    _set(tree + _COMPARE, emulated)
    # emu_start ends by translating each exit's address, to drop the code there.  In user mode that would be a page
    # fault that is not handled: cr2 is lost, and old_exception makes the next true fault a double fault.
    _set(cpu.handle + UC_INVALIDATE, keep)


def interpreted(choose: Callable[[int], bool], emulated: Callable[[int], bool]) -> tuple[Any, Any]:
    """Return the arguments of `install` for Python functions of the address of an instruction.

    An instruction is decided here, when it is translated: `choose` sets its hook, and says whether
    the hook does all that is to be done (`emu.engine.qemu.code_hooks`); otherwise `emulated` says
    whether it is an exit.  `exit_or_not` of ir/common.ll does the same.
    """

    def compare(key: int, _node: int, _data: int) -> int:
        address = word(key)
        return _EXIT if not choose(address) and emulated(address) else _NO_EXIT

    return _ON_COMPARE(compare), _ON_INVALIDATE(lambda _uc, _address, _size: 0)


def _set(place: int, function: Any) -> None:
    ctypes.c_void_p.from_address(place).value = ctypes.cast(function, ctypes.c_void_p).value
