"""The tests that Unicorn puts behind each access to memory, and the mark that leaves them out.

Behind each load and each store that Unicorn translates, and behind each call of a code hook, it
calls `helper_check_exit_request`, so that a hook may end the run there.  The guest's registers are
in memory around that call; the calls and what they prevent are a third of the time of a program.

Trapline ends its runs elsewhere: at the head of a block (`emu.engine.state`), where Unicorn has
another test, and behind a hooked instruction.  So the tests are made for hooked instructions only,
and for all of them while Unicorn counts each instruction.  Unicorn has a mark for code that must
not be left, which it sets itself for the blocks of 32-bit ARM's IT: while the mark is set, what is
translated has no tests.

The mark's place is read from the function that makes the tests, which begins with

    mov  UC(%rdi),%rsi
    cmpb $0,MARK(%rsi)
    je   make the test
    ret

Where the library has other instructions there, all tests stay.

Source: Unicorn 2.1.4, qemu/tcg/tcg-op.c check_exit_request(), include/uc_priv.h
(uc_struct.no_exit_request); the instructions were observed.
"""

from __future__ import annotations

import ctypes
import re
from typing import Final

from emu.engine.qemu import rewriters
from emu.engine.qemu.cpu import Cpu
from emu.support.plain import function_address

_BEGINNING: Final = re.compile(rb"\x48\x8b\xb7....\x80\xbe(....)\x00\x74.\xc3", re.DOTALL)
_SIZE: Final = 17


def mark(cpu: Cpu) -> ctypes.c_uint8 | None:
    """Return the mark of a CPU's engine: 1 leaves the tests out; None: the tests stay."""
    if not rewriters.runs(rewriters.EXIT_CHECKS):
        return None
    code = ctypes.string_at(function_address(cpu.function("check_exit_request")), _SIZE)
    found = _BEGINNING.fullmatch(code)
    if found is None:
        return None
    place = ctypes.c_uint8.from_address(cpu.handle + int.from_bytes(found[1], "little"))
    return place if not place.value else None
