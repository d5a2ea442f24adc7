"""Machine code for `emu.engine.qemu.code_hooks`.

It sets the range of Unicorn's hook; when the hook is called, it calls functions and serves
breakpoints.

A block is left by returning from the hook into the next block. The translated block calls the hook,
and its registers are in memory by then; so the return address is replaced by that of the block at
the pc, which QEMU looks up as it does after an indirect jump. That takes a few nanoseconds; to
raise an exception and enter the loop of the emulator again takes 30.

While Unicorn counts instructions, its own hook that counts is a second one, and a function of
Unicorn calls both (helper_uc_tracecode).  A return from there into a block would leave the stack
and the registers as that function has them: the block would write the guest's registers over
Unicorn's data.  So the block is left by a long jump then, as by an exception.
"""

from __future__ import annotations

from emu.engine.hits.address_table import return_found
from emu.engine.hits.firing_code import FiringCode
from emu.engine.hits.watched import Hooked
from emu.engine.qemu import alignment, helpers, temporaries
from emu.engine.qemu.code_addresses import HookPlaces
from emu.engine.qemu.code_hooks import NOWHERE, CodeHookTable, HookedAddress, HookedCall
from emu.engine.qemu.inline_caches_code import ServedSitesCode
from emu.engine.state import Word
from emu.isa.base import Isa
from emu.isa.unicorn_model import MOST_TEMPORARIES
from emu.native.builder import Function, Module
from emu.native.operations import Value

_RETURN_ADDRESS = "llvm.addressofreturnaddress.p0"


class CodeHooksCode:
    """The functions `choose`, for the translator, and `code_hook`, the hook.

    `firing` serves the breakpoint at an address and says whether it did.
    """

    def __init__(self, module: Module, isa: Isa, places: HookPlaces, firing: FiringCode) -> None:
        self._places = places
        self._firing = firing
        self._accruing = isa.unicorn.accruing is not None
        self._corrected = helpers.corrections(isa.unicorn)
        self._operations = isa.unicorn.operations
        self._aligning = alignment.runs(isa.unicorn)
        self._leaking = isa.unicorn.leaking
        self._find = self._make_find(module)
        self._served = self._make_served(module)
        self._make_choose(module)
        self._call = self._make_call(module)
        self._sites = ServedSitesCode(module, isa, places, firing, self._call)
        self._make_code_hook(module)

    def _make_find(self, module: Module) -> Function:
        """u64 hooked(address): the place, 0 if there is none."""
        f = module.function("hooked", 1, local=True)
        (address,) = f.parameters
        return_found(f, self._places.table, address)
        return f

    def _make_served(self, module: Module) -> Function:
        """u64 served(place): whether a breakpoint is to be served there, and still is there."""
        f = module.function("served", 1, local=True)
        (place,) = f.parameters
        size = f.load(place, HookedAddress.offset("size"))
        f.ret_if(f.eq(size, 0), 0)
        address, code = (
            f.load(place, HookedAddress.offset("at")),
            f.variable(f.load(place, HookedAddress.offset("code"))),
        )
        done = f.variable(0)
        with f.loop() as loop:
            loop.leave_if(f.eq(done.get(), size))
            byte = f.call(self._places.code_byte, self._places.env, f.add(address, done.get()))
            f.ret_if(f.ne(f.and_(f.xor(byte, code.get()), 0xFF), 0), 0)
            code.set(f.lshr(code.get(), 8))
            done.set(f.add(done.get(), 1))
        f.ret(1)
        return f

    def _make_choose(self, module: Module) -> None:
        """u64 choose(address): prepare for an instruction that is to be translated.

        It sets the hook's range, and the mark of `emu.engine.qemu.exit_checks`, and ends the block
        there for `emu.engine.qemu.temporaries`. It returns 1 if a breakpoint is served there.
        """
        f = module.function("choose", 1)
        (address,) = f.parameters
        if self._leaking is not None:
            used = f.load(self._places.context, self._leaking.temporaries, 4)
            with f.when(f.ugt(used, MOST_TEMPORARIES), likely=False):
                f.store(self._places.context, temporaries.ENOUGH, self._leaking.operations, 4)
        if self._aligning:
            wanted = f.value(f"call i64 @aligned(i64 {address})")
            f.store(self._places.pending, f.select(f.ne(wanted, 0), self._places.context, 0))
        place = f.call(self._find, address)
        chosen, served = f.variable(NOWHERE), f.variable(0)
        with f.when(f.ne(place, 0), likely=False):
            call = f.variable(f.load(place, HookedAddress.offset("calls")))
            with f.loop() as loop:
                loop.leave_if(f.eq(call.get(), 0))
                here = call.get()
                call.set(f.load(here, HookedCall.offset("next")))
                loop.again_if(f.ne(f.load(here, HookedCall.offset("leaves")), 0))
                with f.when(f.ne(f.load(here, HookedCall.offset("function")), 0)):
                    chosen.set(address)
            served.set(f.call(self._served, place))
            with f.when(f.ne(served.get(), 0)):
                chosen.set(address)
        if self._accruing:
            with f.when(f.ne(f.value(f"call i64 @accruing(i64 {address})"), 0), likely=False):
                chosen.set(address)
        if self._corrected is not None:
            with f.when(f.ne(f.value(f"call i64 @corrected(i64 {address})"), 0), likely=False):
                chosen.set(address)
                if self._corrected.inline:
                    assert self._operations is not None
                    f.store(self._places.context, temporaries.ENOUGH, self._operations, 4)
        untested = f.load(self._places.table, CodeHookTable.offset("untested"))
        f.store(untested, f.flag(f.eq(chosen.get(), NOWHERE)), 0, 1)
        f.ret_if(f.ne(f.load(self._places.table, CodeHookTable.offset("everywhere")), 0), served.get(), likely=False)
        range_ = f.load(self._places.table, CodeHookTable.offset("range"))
        f.store(range_, chosen.get())
        f.store(range_, chosen.get(), 8)
        f.ret(served.get())

    def _make_call(self, module: Module) -> Function:
        """u64 call_hooks(uc, address, size, place): call functions and serve; 1: leave the block."""
        f = module.function("call_hooks", 4, local=True)
        uc, address, size, place = f.parameters
        call = f.variable(f.load(place, HookedAddress.offset("calls")))
        with f.loop() as loop:
            here = call.get()
            loop.leave_if(f.eq(here, 0))
            call.set(f.load(here, HookedCall.offset("next")))
            function = f.load(here, HookedCall.offset("function"))
            loop.again_if(f.eq(function, 0))
            answer = f.call(function, uc, address, size, f.load(here, HookedCall.offset("data")))
            # Code was written: the block is left in another way, and the hook will be called again.
            f.ret_if(f.ne(f.load(self._places.hooked, Hooked.offset("left")), 0), 0, likely=False)
            loop.again_if(f.eq(f.load(here, HookedCall.offset("leaves")), 0))
            f.ret_if(f.eq(answer, 1), 1)
        f.ret_if(f.eq(f.load(place, HookedAddress.offset("size")), 0), 0)
        entry = f.call(self._firing.remembered, address, f.add(place, HookedAddress.offset("version")))
        f.ret_if(f.eq(entry, 0), 0)
        f.ret(f.call(self._firing.serve, address, entry))
        return f

    def _make_code_hook(self, module: Module) -> None:
        """Void code_hook(uc, address, size, data)."""
        module.declare(_RETURN_ADDRESS, f"declare ptr @{_RETURN_ADDRESS}()")
        f = module.function("code_hook", 4)
        uc, address, size, _ = f.parameters
        always = f.load(self._places.table, CodeHookTable.offset("always"))
        with f.when(f.ne(always, 0), likely=False):
            f.call(always, uc, address, size, 0)
            f.ret_if(f.ne(f.load(self._places.hooked, Hooked.offset("left")), 0))
        place = f.call(self._find, address)
        with (
            f.when(f.ne(place, 0), likely=True),
            f.when(f.ne(f.call(self._call, uc, address, size, place), 0), likely=True),
        ):
            back = self._back(f)
            f.call(self._sites.shorten, uc, f.load(back), place)
            f.store(back, f.call(self._places.next_block, self._places.env))
            f.ret()
        self._merge_accrued(f)
        if self._corrected is not None:
            env = f.value(f"inttoptr i64 {self._places.env} to ptr")
            with f.when(f.ne(self._executed(f, env, address), 0), likely=self._corrected.inline):
                back = self._back(f)
                f.store(back, f.call(self._places.next_block, self._places.env))
        f.ret()

    def _executed(self, f: Function, env: Value, address: Value) -> Value:
        """Execute the instruction at an address, if it is to be corrected; return whether it was."""
        assert self._corrected is not None
        if self._corrected.inline:
            return f.value(f"call i64 @execute_correction(ptr {env}, i64 {address})")
        done = f.variable(0)
        with (
            f.when(f.ne(f.value(f"call i64 @correction_needed(ptr {env}, i64 {address})"), 0), likely=False),
            f.when(f.ne(f.value(f"call i64 @corrected(i64 {address})"), 0)),
        ):
            done.set(f.call(self._places.correct, address))
        return done.get()

    def _back(self, f: Function) -> Value:
        """Return the address of the return address; while Unicorn counts, leave the block instead."""
        number = f.value(f"ptrtoint ptr {f.value(f'call ptr @{_RETURN_ADDRESS}()')} to i64")
        with f.when(f.ne(f.load(self._places.table, CodeHookTable.offset("everywhere")), 0), likely=False):
            f.call(self._places.leave, f.load(self._places.words, 8 * Word.CPU))
        return number

    def _merge_accrued(self, f: Function) -> None:
        """Show the instruction the exceptions of those before it, if QEMU does not."""
        if self._accruing:
            f.line(f"call void @merge_accrued(ptr {f.value(f'inttoptr i64 {self._places.env} to ptr')})")
