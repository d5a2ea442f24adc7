"""DTrace's own memory in machine code: from an address of DIF to one of the host."""

from __future__ import annotations

from typing import Final

from emu.native.builder import Function, Module
from emu.native.values import Value, Word
from trapline.framework.memory import DTRACE_BASE, OFFSET_MASK, REGION_SHIFT, REGIONS_MAX

_ENTRY_SHIFT: Final = 4
_SIZE: Final = 8


def own(f: Function, regions: Word, address: Word, size: Word) -> Value:
    """Return the place of `size` bytes of a region in this process; 0 if not all are in one region."""
    number = f.lshr(f.sub(address, DTRACE_BASE), REGION_SHIFT)
    offset = f.and_(address, OFFSET_MASK)
    known = f.ult(number, REGIONS_MAX)
    # An address outside all regions is looked up in the first one, and the result is not used.
    entry = f.add(regions, f.shl(f.select(known, number, 0), _ENTRY_SHIFT))
    limit = f.load(entry, _SIZE)
    fits = f.both(f.ule(size, limit), f.ule(offset, f.sub(limit, size)))
    return f.select(f.both(known, fits), f.add(f.load(entry), offset), 0)


def own_function(module: Module, *, local: bool = False) -> Function:
    """Write `u64 own(regions, address, size)`, which does the same."""
    f = module.function("own", 3, local=local)
    f.ret(own(f, *f.parameters))
    return f
