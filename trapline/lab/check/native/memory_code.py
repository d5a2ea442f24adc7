"""Machine code for the memory of trials: the hook for pages, and the accesses of plans.

Each of the eight pages with data stands at many addresses (`trapline.lab.check.cpu.aliased`).

A page that is read is not writable in Unicorn's TLB, so the first write to it calls the hook, which
notes the page.  After each state only the pages that were written are compared and restored; they
leave the TLB, so that the next write is noted again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from emu.engine.hits.plan_code import ARGUMENT
from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.engine.qemu import library
from emu.engine.qemu.block_layout import BlockLayout
from emu.engine.qemu.library import Library
from emu.engine.state import Word
from emu.isa.base import Isa
from emu.native.builder import Function, Module
from emu.native.operations import Value
from trapline.lab.check.cpu.aliased import RIGHTS
from trapline.lab.check.cpu.states import KINDS
from trapline.lab.check.native.trial import NOTED, BatchBlock, TrialBlock

_PAGE_BITS: Final = 12
# The rights of the eight pages, a byte each; and what stands for those of an address that is not one of theirs.
_RIGHTS: Final = sum(int(rights) << 8 * kind for kind, rights in enumerate(RIGHTS))
_MAPPED: Final = 0x80
_PAGE_MASK: Final = -PAGE


class MemoryCode:
    """The functions `fill` and `reach`, and what other code asks of addresses."""

    def __init__(self, isa: Isa, module: Module, offsets: BlockLayout, library: Library) -> None:
        self._word = isa.word
        self._layout = offsets
        self._library = library
        self.within = self._make_within(module)
        self._aliased = self._make_aliased(module)
        self._note = self._make_note(module)
        self._make_reach(module)
        self._make_fill(module)
        self.whole = self._make_whole(module)
        self._alike = self._make_alike(module)
        self.settle = self._make_settle(module)

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
        bounds, areas = (f.load(trial, TrialBlock.offset(name)) for name in ("bounds", "areas"))
        f.ret_if(f.ne(f.call(self.within, bounds, areas, address), 0), _MAPPED)
        kind = f.and_(f.lshr(address, _PAGE_BITS), KINDS - 1)
        f.ret(f.and_(f.lshr(_RIGHTS, f.shl(kind, 3)), 0xFF))
        return f

    def _make_reach(self, module: Module) -> Function:
        """u64 reach(trial, address, access): the place of a word for a plan; 0: unknown.

        The engine calls it by `Word.REACH`.  An access that a page refuses is the fault of the
        instruction: registers are unchanged by then (`emu.displaced.plans.Plan`), and the pc is at
        it.
        """
        f = module.function("reach", 3)
        trial, address, access = f.parameters
        rights = f.call(self._aliased, trial, address)
        f.ret_if(f.eq(rights, _MAPPED), 0)
        with f.when(f.eq(f.and_(rights, access), 0)):
            f.ret_if(f.eq(access, ARGUMENT), f.load(trial, TrialBlock.offset("nothing")))
            f.store(trial, address, TrialBlock.offset("refused"))
            f.store(f.load(trial, TrialBlock.offset("words")), 1, 8 * Word.REFUSED)
            f.ret(0)
        # No access is larger than a word.
        f.ret_if(f.ugt(f.and_(address, PAGE - 1), PAGE - self._word), 0)
        with f.when(f.eq(access, Access.WRITE)):
            f.call(self._note, trial, address)
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
        access = f.shl(1, f.sub(number, library.READ))
        f.ret_if(f.eq(f.and_(rights, access), 0), 0)
        f.store(entry, f.add(f.load(trial, TrialBlock.offset("physical")), f.and_(address, KINDS * PAGE - 1)))
        with f.choice(f.eq(access, Access.WRITE)) as (writes, other):
            with writes:
                f.call(self._note, trial, address)
                f.store(entry, rights, 8, 4)
            with other:
                f.store(entry, f.and_(rights, ~Access.WRITE), 8, 4)
        f.ret(1)
        return f

    def _make_note(self, module: Module) -> Function:
        """u64 note(trial, address): note that a page is written."""
        f = module.function("note", 2, local=True)
        trial, address = f.parameters
        count = f.load(trial, TrialBlock.offset("written"))
        f.store(trial, f.add(count, 1), TrialBlock.offset("written"))
        with f.when(f.ult(count, NOTED)):
            place = f.add(f.load(trial, TrialBlock.offset("noted")), f.shl(count, 3))
            f.store(place, f.and_(address, _PAGE_MASK))
        f.ret()
        return f

    def _make_alike(self, module: Module) -> Function:
        """u64 alike(trial, plain, patched): whether the pages that a CPU has written are the same."""
        f = module.function("alike", 3, local=True)
        trial, *both = f.parameters
        one, other = (f.load(each, TrialBlock.offset("memory")) for each in both)
        with self._each_written(f, trial) as page:
            at = f.and_(page, KINDS * PAGE - 1)
            f.ret_if(f.fails(f.same(f.add(one, at), f.add(other, at), PAGE)), 0)
        f.ret(1)
        return f

    @contextmanager
    def _each_written(self, f: Function, trial: Value) -> Iterator[Value]:
        """Generate a loop over the addresses of written pages, all of which are noted."""
        place = f.variable(f.load(trial, TrialBlock.offset("noted")))
        end = f.add(place.get(), f.shl(f.load(trial, TrialBlock.offset("written")), 3))
        with f.loop() as loop:
            loop.leave_if(f.uge(place.get(), end))
            yield f.load(place.get())
            place.set(f.add(place.get(), 8))

    def _make_whole(self, module: Module) -> Function:
        """u64 whole(batch, plain, patched): whether all pages are the same; they are restored."""
        f = module.function("whole", 3, local=True)
        batch, *both = f.parameters
        pristine, size = (f.load(batch, BatchBlock.offset(name)) for name in ("pristine", "memory_size"))
        memory = [f.load(one, TrialBlock.offset("memory")) for one in both]
        same = f.flag(f.same(memory[0], memory[1], size))
        for trial, place in zip(both, memory, strict=True):
            f.copy(place, pristine, size)
            self.attend(f, trial)
        f.ret(same)
        return f

    def attend(self, f: Function, trial: Value) -> None:
        """Make Unicorn call the hook at the next write to any page: nothing is written."""
        f.call(self._library.qemu("tlb_flush", 1), f.load(trial, TrialBlock.offset("cpu")))
        self._forget_written(f, trial)

    @staticmethod
    def _forget_written(f: Function, trial: Value) -> None:
        f.store(trial, 0, TrialBlock.offset("written"))
        f.store(f.load(trial, TrialBlock.offset("host_wrote")), 0)

    def _make_settle(self, module: Module) -> Function:
        """u64 settle(batch, plain, patched): compare what was written; whether it was the same.

        Then it is restored.
        """
        f = module.function("settle", 3)
        batch, *both = f.parameters
        written = [f.load(trial, TrialBlock.offset("written")) for trial in both]
        host = [f.load(f.load(trial, TrialBlock.offset("host_wrote"))) for trial in both]
        f.ret_if(f.eq(f.or_(f.or_(*written), f.or_(*host)), 0), 1)
        few = f.both(*(f.ule(count, NOTED) for count in written))
        with f.when(f.either(f.ne(f.or_(*host), 0), f.fails(few)), likely=False):
            f.ret(f.call(self.whole, batch, *both))
        same = f.and_(*(f.call(self._alike, trial, *both) for trial in both))
        pristine = f.load(batch, BatchBlock.offset("pristine"))
        memory = [f.load(one, TrialBlock.offset("memory")) for one in both]
        for trial in both:
            cpu = f.load(trial, TrialBlock.offset("cpu"))
            with self._each_written(f, trial) as page:
                at = f.and_(page, KINDS * PAGE - 1)
                for one in memory:
                    f.copy(f.add(one, at), f.add(pristine, at), PAGE)
                f.call(self._library.qemu("tlb_flush_page", 2), cpu, page)
            self._forget_written(f, trial)
        f.ret(same)
        return f

    def take_pages(self, f: Function, trial: Value, *, own: bool) -> None:
        """Make Unicorn call the check's hook for pages, or the engine's."""
        hooks = (f.load(trial, TrialBlock.offset(name)) for name in ("engine_hook", "own_hook"))
        for hook, out in zip(hooks, (own, not own), strict=True):
            f.store(hook, int(out), self._layout.hook_out, 1)
        words, reach = (f.load(trial, TrialBlock.offset(name)) for name in ("words", "reach"))
        f.store(words, reach if own else 0, 8 * Word.REACH)
        f.store(words, trial, 8 * Word.REACH_FOR)
