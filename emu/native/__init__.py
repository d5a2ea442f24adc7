"""Generation of machine code: the parts that all users share.

| part | what it is |
| --- | --- |
| `Block` (`emu.native.block`) | named words in memory that machine code and Python share |
| `Module`, `Function` (`emu.native.builder`) | functions under construction |
| `Operations` (`emu.native.operations`) | the operations that functions consist of |
| `Value`, `Condition` (`emu.native.operations`) | the values of operations |
| `compiled` (`emu.native.compile`) | their object code, kept on disk |
| `Linked` (`emu.native.link`) | object code in memory, its symbols bound to addresses |
| `libc` (`emu.native.libc`) | the C library of this process |

Machine code is an accelerator: without llvmlite everything runs in Python, with the same results.
"""

from __future__ import annotations

import importlib.util
import sys
from functools import cache
from typing import Final

NOT_INSTALLED: Final = "llvmlite is not installed"
# LLVM makes object files of the host's format, and `linking` reads ELF.
_OTHER_FORMATS: Final = frozenset({"darwin", "win32", "cygwin"})


@cache
def missing() -> str:
    """Return why there is no machine code on this host; "": there is."""
    if sys.platform in _OTHER_FORMATS:
        return "machine code is made for hosts with ELF files"
    return "" if importlib.util.find_spec("llvmlite") else NOT_INSTALLED


def available() -> bool:
    """Return whether machine code can be made."""
    return not missing()
