"""Machine code for `emu.engine.qemu.inline_caches`: what a site calls, and how a site is made."""

from __future__ import annotations

from typing import Final

from emu.engine.hits.firing_code import FiringCode
from emu.engine.memory.pages import PAGE
from emu.engine.qemu.code_addresses import HookPlaces
from emu.engine.qemu.code_hooks import NOWHERE, HookedAddress, HookedCall
from emu.engine.qemu.inline_caches import MARKER, SITE_SIZE, ServedSite
from emu.engine.qemu.inlined_count import SERVED_HOOK
from emu.engine.state import Word
from emu.isa.base import Isa
from emu.native.builder import Callee, Function, Module
from emu.native.operations import Value

# call rel32, call *constant(%rip); where each begins, from the place behind it.
_NEAR_CALL, _NEAR = 0xE8, -5
_FAR_CALL, _FAR = 0x15FF, -6
# movabs to %rcx and %rdi, xor %esi,%esi.
_TO_RCX, _TO_RDI, _CLEAR = 0xB948, 0xBF48, 0xF633
_NOP: Final = 0x90
# Where the last two instructions of the test are.
_CLEAR_AT: Final = 10
_TEST_AT: Final = 12
# test %rax,%rax    je behind the jump    jmp *%rax
_GO_ON: Final = bytes.fromhex("4885c0 7402 ffe0")
_JUMP, _JUMP_SIZE = 0xEB, 2
# `block_size` of ir/blocks.ll.
_BLOCK_SIZE: Final = Callee("block_size")


class ServedSitesCode:
    """The functions `served_hook`, and `shorten`, which makes a site.

    `call_hooks`: u64 (uc, address, size, place), which calls the functions of a place and serves.
    """

    def __init__(self, module: Module, isa: Isa, places: HookPlaces, firing: FiringCode, call_hooks: Function) -> None:
        self._pc = 8 * isa.registers.slots[isa.registers.pc]
        self._places = places
        self._firing = firing
        self._call_hooks = call_hooks
        self._ask = self._make_ask(module)
        self._make_served_hook(module)
        self.shorten = self._make_shorten(module)

    def _word(self, f: Function, word: Word) -> Value:
        return f.load(self._places.words, 8 * word)

    def _make_ask(self, module: Module) -> Function:
        """u64 next_code(uc, address, site): the block at the pc, as QEMU finds it; remember it."""
        f = module.function("next_code", 3, local=True)
        uc, address, site = f.parameters
        code = f.call(self._places.next_block, self._places.env)
        counter = self._word(f, Word.INVALIDATIONS)
        f.ret_if(f.eq(counter, 0), code, likely=False)
        count = f.load(counter)
        # While code is written again and again, it is not worth the question for the block's size.
        seen = f.load(site, ServedSite.offset("seen"))
        f.store(site, count, ServedSite.offset("seen"))
        f.ret_if(f.ne(seen, count), code)
        # The code that ends the run is below all blocks.
        f.ret_if(f.ule(code, self._word(f, Word.LOWEST)), code)
        pc = f.load(self._places.env, self._pc)
        f.ret_if(f.uge(f.xor(pc, address), PAGE), code)
        size = f.call(_BLOCK_SIZE, uc, pc)
        f.ret_if(f.ugt(f.add(f.and_(pc, PAGE - 1), size), PAGE), code)
        f.store(site, pc, ServedSite.offset("pc"))
        f.store(site, code, ServedSite.offset("code"))
        f.store(site, count, ServedSite.offset("count"))
        f.ret(code)
        return f

    def _make_served_hook(self, module: Module) -> None:
        """u64 served_hook(uc, address, size, site): serve; the code to go on with, 0: not served."""
        f = module.function("served_hook", 4)
        uc, address, size, site = f.parameters
        place = f.load(site, ServedSite.offset("place"))
        with f.choice(f.eq(f.load(place, HookedAddress.offset("calls")), 0), likely=True) as (plain, hooked):
            with plain:
                entry = f.call(self._firing.remembered, address, f.add(place, HookedAddress.offset("version")))
                f.ret_if(f.eq(entry, 0), 0, likely=False)
                f.ret_if(f.eq(f.call(self._firing.serve, address, entry), 0), 0, likely=False)
            with hooked:
                f.ret_if(f.eq(f.call(self._call_hooks, uc, address, size, place), 0), 0, likely=False)
        counter = self._word(f, Word.INVALIDATIONS)
        with f.when(f.ne(counter, 0), likely=True):
            here = f.eq(f.load(site, ServedSite.offset("pc")), f.load(self._places.env, self._pc))
            holds = f.eq(f.load(site, ServedSite.offset("count")), f.load(counter))
            f.ret_if(f.both(here, holds), f.load(site, ServedSite.offset("code")), likely=True)
        f.ret(f.call(self._ask, uc, address, site))

    def _make_shorten(self, module: Module) -> Function:
        """u64 shorten(uc, back, place): change the call before `back` if it is the known one."""
        f = module.function("shorten", 3, local=True)
        uc, back, place = f.parameters
        calls = f.load(place, HookedAddress.offset("calls"))
        with f.when(f.ne(calls, 0)):  # what others call may end the run there: the test is needed
            f.ret_if(f.ne(f.load(calls, HookedCall.offset("next")), 0))
            f.ret_if(f.eq(f.load(calls, HookedCall.offset("leaves")), 0))
        site, late = self._word(f, Word.FREE), self._word(f, Word.OVERDUE)
        f.ret_if(f.either(f.eq(site, 0), f.eq(late, 0)))
        call = f.variable(f.add(back, _NEAR))
        with f.when(f.ne(f.load(call.get(), 0, 1), _NEAR_CALL)):
            call.set(f.add(back, _FAR))
            f.ret_if(f.ne(f.load(call.get(), 0, 2), _FAR_CALL))
        for offset, size, wanted in ((-10, 2, _TO_RCX), (-8, 8, MARKER)):
            f.ret_if(f.ne(f.load(call.get(), offset, size), wanted))
        for offset, size, code in ((0, 2, _TO_RDI), (2, 8, uc), (_CLEAR_AT, 2, _CLEAR)):
            f.ret_if(f.ne(f.load(back, offset, size), code))
        end = f.variable(_TEST_AT - _NEAR)
        with f.when(f.ne(f.load(back, _TEST_AT, 1), _NEAR_CALL)):
            end.set(_TEST_AT - _FAR)
            f.ret_if(f.ne(f.load(back, _TEST_AT, 2), _FAR_CALL))
        distance = f.sub(f.add(late, SERVED_HOOK), back)
        f.ret_if(f.ne(f.low(distance, 4, signed=True), distance))
        self._take_site(f, site, place)
        f.store(call.get(), site, -8)
        f.store(call.get(), _NOP, 0, 1)  # of the longer call
        f.store(back, _NEAR_CALL, _NEAR, 1)
        f.store(back, distance, _NEAR + 1, 4)
        # The eighth byte is the jump's first one.
        f.store(back, int.from_bytes(_GO_ON + bytes((_JUMP,)), "little"))
        f.store(back, f.sub(end.get(), len(_GO_ON) + _JUMP_SIZE), len(_GO_ON) + 1, 1)
        f.ret()
        return f

    def _take_site(self, f: Function, site: Value, place: Value) -> None:
        """Take the site from the free entries, and give up the change if there is none."""
        following, end = f.add(site, SITE_SIZE), self._word(f, Word.FREE_END)
        f.store(self._places.words, f.select(f.uge(following, end), 0, following), 8 * Word.FREE)
        f.ret_if(f.ugt(following, end))
        f.store(site, place, ServedSite.offset("place"))
        f.store(site, NOWHERE, ServedSite.offset("pc"))
        f.store(site, 0, ServedSite.offset("seen"))
