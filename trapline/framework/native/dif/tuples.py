"""Keys of associative arrays and thread-locals in machine code, made from the tuple stack."""

from __future__ import annotations

from typing import Final

from emu.native.builder import Function, Module
from trapline.framework.base.blocks import DynamicWord
from trapline.framework.native.dif.dynvars import HEADER
from trapline.framework.native.memory import own

_WORD: Final = 8
# Bytes of an entry of the tuple stack, and of a part of a key: both are a value and a size.
_PART_SHIFT: Final = 4
_PART: Final = 1 << _PART_SHIFT


def key_function(module: Module, *, local: bool = False) -> Function:
    """Write `u64 key(block, regions, stack, depth, variable, threads, thread)`: the size of a key.

    The key is written to the room for it in the block of the dynamic variables: `depth` entries of
    the tuple stack, the number of the variable and, if `threads` is 1, the key of the thread.  The
    size is 0 if Python must do it: for data outside DTrace's own memory, and for keys longer than a
    chunk.
    """
    f = module.function("key", 7, local=local)
    block, regions, stack, depth, variable, threads, thread = f.parameters
    room = f.load(block, _WORD * DynamicWord.KEY)
    limit = f.add(room, f.sub(f.load(block, _WORD * DynamicWord.CHUNK), HEADER))
    parts = f.add(f.add(depth, 1), threads)
    referred = f.variable(f.add(room, f.shl(parts, _PART_SHIFT)))
    f.ret_if(f.ugt(referred.get(), limit), likely=False)
    part, entry = f.variable(room), f.variable(stack)
    end = f.add(stack, f.shl(depth, _PART_SHIFT))
    with f.loop() as loop:
        loop.leave_if(f.eq(entry.get(), end))
        value, size = f.load(entry.get()), f.load(entry.get(), _WORD)
        refers = f.ne(size, 0)
        f.store(part.get(), f.select(refers, 0, value))
        f.store(part.get(), size, _WORD)
        with f.when(refers):
            target = referred.get()
            f.ret_if(f.ugt(size, f.sub(limit, target)), likely=False)
            padded = f.and_(f.add(size, _WORD - 1), -_WORD)
            f.ret_if(f.ugt(padded, f.sub(limit, target)), likely=False)
            source = own(f, regions, value, size)
            f.ret_if(f.eq(source, 0), likely=False)
            f.store(target, 0, f.sub(padded, _WORD))
            f.copy(target, source, size)
            referred.set(f.add(target, padded))
        part.set(f.add(part.get(), _PART))
        entry.set(f.add(entry.get(), _PART))
    f.store(part.get(), variable)
    f.store(part.get(), 0, _WORD)
    with f.when(f.ne(threads, 0)):
        f.store(part.get(), thread, _PART)
        f.store(part.get(), 0, _PART + _WORD)
    f.ret(f.sub(referred.get(), room))
    return f
