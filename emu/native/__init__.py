"""Generation of machine code: the parts that all users share.

| part | what it is |
| --- | --- |
| `Block` (`emu.native.block`) | named words in memory that machine code and Python share |
| `Module`, `Function` (`emu.native.builder`) | functions under construction |
| `Operations` (`emu.native.operations`) | the operations that functions consist of |
| `Value`, `Condition` (`emu.native.values`) | the values of operations |
| `compiled` (`emu.native.compiling`) | their object code, kept on disk |
| `Linked` (`emu.native.linking`) | object code in memory, its symbols bound to addresses |
| `libc` (`emu.native.libc`) | the C library of this process |

Machine code is an accelerator: without llvmlite everything runs in Python, with the same results.
"""

from __future__ import annotations

import importlib.util
from functools import cache


@cache
def available() -> bool:
    """Return whether llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None
