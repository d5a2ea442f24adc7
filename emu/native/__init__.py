"""Generation of machine code: the parts that all users share.

| part | what it is |
| --- | --- |
| `Block` (`emu.native.block`) | named words in memory that machine code and Python share |
| `Module`, `Function` (`emu.native.builder`) | functions under construction |
| `Operations` (`emu.native.operations`) | what a function can do, an operation at a time |
| `Value`, `Condition` (`emu.native.values`) | what it computes with |
| `compiled` (`emu.native.compiling`) | their object code, kept on disk |
| `Linked` (`emu.native.linking`) | object code in memory, its symbols bound to addresses |
| `libc` (`emu.native.libc`) | the C library of this process |

Machine code is an accelerator: what has no llvmlite runs in Python, with the same results.
"""

from __future__ import annotations

import importlib.util
from functools import cache


@cache
def available() -> bool:
    """Return whether llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None
