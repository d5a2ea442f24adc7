"""Machine code for the memory of trials: the hook for pages, and the accesses of plans.

Each of the eight pages with data stands at many addresses (`trapline.lab.check.aliased`).
"""

from __future__ import annotations

from typing import Final

import unicorn

from emu.engine.pages import PAGE
from emu.engine.state import Word
from emu.native.builder import Function, Module
from emu.native.values import Value
from trapline.lab.check.aliased import RIGHTS
from trapline.lab.check.native import layout
from trapline.lab.check.native.trial import TrialBlock
from trapline.lab.check.states import KINDS, LAST_PAGE

_PAGE_BITS: Final = 12
# The rights of the eight pages, a byte each; and what stands for those of an address that is not one of theirs.
_RIGHTS: Final = sum(int(rights) << 8 * kind for kind, rights in enumerate(RIGHTS))
_MAPPED: Final = 0x80


class MemoryCode:
    """The functions `fill` and `reach`, and what other code asks of addresses."""

    def __init__(self, module: Module) -> None:
        self.within = self._make_within(module)
        self._aliased = self._make_aliased(module)
        self._make_reach(module)
        self._make_fill(module)

    def _make_within(self, module: Module) -> Function:
        """u64 within(stretches, count, address): whether one of the ranges contains an address."""
        f = module.function("within", 3, local=True)
        stretches, count, address = f.parameters
        stretch = f.variable(stretches)
        end = f.add(stretches, f.shl(count, 4))
        with f.loop() as loop:
            here = stretch.get()
            loop.leave_if(f.uge(here, end))
            start = f.load(here)
            f.ret_if(f.ult(f.sub(address, start), f.sub(f.load(here, 8), start)), 1)
            stretch.set(f.add(here, 16))
        f.ret(0)
        return f

    def _make_aliased(self, module: Module) -> Function:
        """u64 aliased(trial, address): the rights of one of the eight pages.

        `_MAPPED`: the address is the program's, or a provider's.
        """
        f = module.function("aliased", 2, local=True)
        trial, address = f.parameters
        # The engine has an answer of its own for the last page, where emu_start ends.
        f.ret_if(f.uge(address, LAST_PAGE), _MAPPED)
        bounds, areas = (f.load(trial, TrialBlock.offset(name)) for name in ("bounds", "areas"))
        f.ret_if(f.ne(f.call(self.within, bounds, areas, address), 0), _MAPPED)
        kind = f.and_(f.lshr(address, _PAGE_BITS), KINDS - 1)
        f.ret(f.and_(f.lshr(_RIGHTS, f.shl(kind, 3)), 0xFF))
        return f

    def _make_reach(self, module: Module) -> Function:
        """u64 reach(trial, address, access): the place of eight bytes for a plan; 0: unknown.

        The engine calls it by `Word.REACH`.
        """
        f = module.function("reach", 3)
        trial, address, access = f.parameters
        f.ret_if(f.ugt(f.and_(address, PAGE - 1), PAGE - 8), 0)
        rights = f.call(self._aliased, trial, address)
        f.ret_if(f.eq(rights, _MAPPED), 0)
        f.ret_if(f.eq(f.and_(rights, access), 0), 0)
        f.ret(f.add(f.load(trial, TrialBlock.offset("memory")), f.and_(address, KINDS * PAGE - 1)))
        return f

    def _make_fill(self, module: Module) -> Function:
        """u64 fill(uc, address, kind, entry, trial): the entry of Unicorn's TLB for a page.

        0: nothing, which is a fault.
        """
        f = module.function("fill", 5)
        uc, address, kind, entry, trial = f.parameters
        number = f.low(kind, 4)
        rights = f.call(self._aliased, trial, address)
        with f.when(f.eq(rights, _MAPPED)):
            callback, words = (f.load(trial, TrialBlock.offset(name)) for name in ("fill", "words"))
            f.ret(f.and_(f.call(callback, uc, address, number, entry, words), 1))
        # Unicorn's numbers for read, write and fetch follow each other, as the bits of an access do.
        access = f.shl(1, f.sub(number, unicorn.UC_MEM_READ))
        f.ret_if(f.eq(f.and_(rights, access), 0), 0)
        f.store(entry, f.add(f.load(trial, TrialBlock.offset("physical")), f.and_(address, KINDS * PAGE - 1)))
        f.store(entry, rights, 8, 4)
        f.ret(1)
        return f

    def take_pages(self, f: Function, trial: Value, *, own: bool) -> None:
        """Make Unicorn call the check's hook for pages, or the engine's."""
        hooks = (f.load(trial, TrialBlock.offset(name)) for name in ("engine_hook", "own_hook"))
        for hook, out in zip(hooks, (own, not own), strict=True):
            f.store(hook, int(out), layout.HOOK_OUT, 1)
        words, reach = (f.load(trial, TrialBlock.offset(name)) for name in ("words", "reach"))
        f.store(words, reach if own else 0, 8 * Word.REACH)
        f.store(words, trial, 8 * Word.REACH_FOR)
