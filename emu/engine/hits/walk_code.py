"""A walk through a guest's page tables in machine code: what `Paging.translate` does in Python."""

from __future__ import annotations

from emu.isa.base import PageTables, Paging
from emu.native.builder import Function
from emu.native.operations import Word
from emu.support.words import WORD_MASK

_WORD = 8
_PLACES = 0x1FF


def write_walk(f: Function, tables: PageTables, ram: Word, ram_end: Word, paging: Paging | None = None) -> Function:
    """Write u64 walk(root, address): where an address is in this process; 0: it is not mapped.

    `root` is the value of the register that names the root table.  `ram` and `ram_end` are where
    the guest's RAM begins and ends in this process.  With `paging` the function has a third
    parameter: if it is not 0, user programs must be allowed to write there.
    """
    root, address = f.parameters[:2]
    named = f.and_(root, tables.root_mask)
    f.ret_if(f.eq(named, 0), 0, likely=False)
    size = f.sub(ram_end, ram)
    table = f.shl(named, tables.root_shift)
    for shift in tables.shifts:
        place = f.add(table, f.shl(f.and_(f.lshr(address, shift), _PLACES), 3))
        f.ret_if(f.ugt(place, f.sub(size, _WORD)), 0, likely=False)
        entry = f.load(f.add(ram, place))
        f.ret_if(f.eq(f.and_(entry, tables.valid), 0), 0)
        frame = f.shl(f.and_(entry, tables.frame_mask), tables.frame_shift)
        if shift == tables.shifts[-1] and not tables.leaf_last:
            _permit(f, paging, entry)
            _page(f, frame, address, shift, ram, size)
        elif shift <= tables.largest_leaf:
            bits = f.and_(entry, tables.leaf_mask)
            with f.when(f.ne(bits, 0) if tables.leaf_set else f.eq(bits, 0)):
                _permit(f, paging, entry)
                _page(f, frame, address, shift, ram, size)
        table = frame
    if tables.leaf_last:
        f.ret(0)
    return f


def _permit(f: Function, paging: Paging | None, entry: Word) -> None:
    """Refuse an entry that does not permit user programs to write, if that is asked."""
    if paging is not None:
        writing = f.ne(f.parameters[2], 0)
        f.ret_if(f.both(writing, f.ne(f.and_(entry, paging.writable_mask), paging.writable)), 0, likely=False)


def _page(f: Function, frame: Word, address: Word, shift: int, ram: Word, size: Word) -> None:
    """Return a place in a page of 1 << `shift` bytes, if all of its word is in RAM."""
    offset = (1 << shift) - 1
    physical = f.or_(f.and_(frame, ~offset & WORD_MASK), f.and_(address, offset))
    f.ret(f.select(f.ule(physical, f.sub(size, _WORD)), f.add(ram, physical), 0))
