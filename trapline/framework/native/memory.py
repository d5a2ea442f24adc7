"""DTrace's own memory in machine code: from an address of DIF to one of the host."""

from __future__ import annotations

from typing import Final

from emu.native.builder import Function, Module
from emu.native.operations import Value, Word
from trapline.framework.base.memory import SLOTS_MAX

# Log2 of the bytes of an entry of the table: a place and a size.
ENTRY_SHIFT: Final = 4
_SIZE: Final = 8
# Where the table has the first address, and the bits of an offset in a slot.
_BASE: Final = SLOTS_MAX << ENTRY_SHIFT
_SHIFT: Final = _BASE + 8


def slot(f: Function, regions: Word, address: Word) -> tuple[Value, Value]:
    """Return the number of the slot that an address would be in, and the offset in the slot."""
    distance, shift = f.sub(address, f.load(regions, _BASE)), f.load(regions, _SHIFT)
    number = f.lshr(distance, shift)
    return number, f.sub(distance, f.shl(number, shift))


def own(f: Function, regions: Word, address: Word, size: Word) -> Value:
    """Return the place of `size` bytes of a region in this process; 0 if not all are in one region."""
    number, offset = slot(f, regions, address)
    known = f.ult(number, SLOTS_MAX)
    # An address outside all slots is looked up in the first one, and the result is not used.
    entry = f.add(regions, f.shl(f.select(known, number, 0), ENTRY_SHIFT))
    limit = f.load(entry, _SIZE)
    fits = f.both(f.ule(size, limit), f.ule(offset, f.sub(limit, size)))
    return f.select(f.both(known, fits), f.add(f.load(entry), offset), 0)


def own_function(module: Module, *, local: bool = False) -> Function:
    """Write `u64 own(regions, address, size)`, which does the same."""
    f = module.function("own", 3, local=local)
    f.ret(own(f, *f.parameters))
    return f
