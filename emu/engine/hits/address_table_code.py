"""Machine code that searches the tables of `emu.engine.hits.address_table`."""

from __future__ import annotations

from collections.abc import Callable

from emu.engine.hits.address_table import MULTIPLIER, Addressed, TableHeader
from emu.native.builder import Function
from emu.native.values import Condition, Value


def return_found(f: Function, header: Value, address: Value, fits: Callable[[Value], Condition] | None = None) -> None:
    """Let a function return the block at an address, the first one that `fits`; 0: there is none."""
    table, mask = f.load(header, TableHeader.offset("table")), f.load(header, TableHeader.offset("mask"))
    index = f.variable(f.lshr(f.mul(address, MULTIPLIER), f.load(header, TableHeader.offset("shift"))))
    with f.loop():
        block = f.load(table, f.shl(index.get(), 3))
        f.ret_if(f.eq(block, 0), 0)
        here = f.eq(f.load(block, Addressed.offset("at")), address)
        if fits is None:
            f.ret_if(here, block)
        else:
            with f.when(here):
                f.ret_if(fits(block), block)
        index.set(f.and_(f.add(index.get(), 1), mask))
