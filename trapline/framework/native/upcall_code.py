"""The upcalls from machine code to Python; `trapline.framework.native.upcalls` answers.

Machine code calls one function for all of it, `upcall(which, a, b, c, d)`, which returns a word.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum, auto

from emu.native.builder import Function
from emu.native.operations import Value, Word


class Upcall(IntEnum):
    """An upcall from machine code to Python, with up to four words, listed in the comments."""

    # size, address
    LOAD = auto()
    LOAD_USER = auto()
    # address, size, value
    STORE = auto()
    # source, size, destination
    COPY = auto()
    # size
    ALLOCATE = auto()
    # address, address
    COMPARE = auto()
    # number of the variable
    SCALAR = auto()
    # number of the array, index
    ELEMENT = auto()
    # number of the subroutine, what the destination has now
    SUBROUTINE = auto()
    # kind, size, value
    PUSH_REFERENCE = auto()
    # scope, number, value
    STORE_STATIC = auto()
    # scope, number, whether there is a tuple
    LOAD_DYNAMIC = auto()
    # scope, number, whether there is a tuple, value
    STORE_DYNAMIC = auto()
    # (nothing): the time
    NOW = auto()
    # (nothing)
    CLEAN = auto()
    # bytes, alignment: an offset in the principal buffer, or -1
    RESERVE = auto()
    # index of the action, value, where to, bytes to keep (0: all)
    RECORD = auto()
    # (nothing)
    EXIT = auto()
    # id, bytes, alignment: the address of the buffer's words, or 0
    SPECULATE = auto()
    # id
    COMMIT = auto()
    DISCARD = auto()
    # kind, value
    EFFECT = auto()
    # number of the action, 0 for the predicate
    FAILED = auto()
    # pc of a user program: whether a function begins there
    USER_START = auto()


def asks(f: Function, which: Upcall, *operands: Word) -> Callable[[], Value]:
    """Return what writes an upcall."""
    words = (*operands, 0, 0, 0, 0)[:4]
    return lambda: f.call(f.module.external("upcall", 5), int(which), *words)
