"""Machine code for `emu.engine.code_hooks`.

The range of Unicorn's hook is set, and functions are called.
"""

from __future__ import annotations

from emu.engine.code_hooks import MULTIPLIER, NOWHERE, CodeHook, CodeHookTable
from emu.native.builder import Function, Module
from emu.native.values import Value


class CodeHooksCode:
    """The functions `choose`, for the translator, and `code_hook`, the hook.

    `block` is where the table is.
    """

    def __init__(self, module: Module, block: Value) -> None:
        self._block = block
        self._find = self._make_find(module)
        self._make_choose(module)
        self._make_code(module)

    def _make_find(self, module: Module) -> Function:
        """u64 hooked(address): the first hook there, 0 if there is none."""
        f = module.function("hooked", 1, local=True)
        (address,) = f.parameters
        table, mask = (f.load(self._block, CodeHookTable.offset(name)) for name in ("table", "mask"))
        hashed = f.lshr(f.mul(address, MULTIPLIER), f.load(self._block, CodeHookTable.offset("shift")))
        place = f.variable(hashed)
        with f.loop():
            hook = f.load(table, f.shl(place.get(), 3))
            f.ret_if(f.eq(hook, 0), 0)
            f.ret_if(f.eq(f.load(hook, CodeHook.offset("at")), address), hook)
            place.set(f.and_(f.add(place.get(), 1), mask))
        return f

    def _make_choose(self, module: Module) -> None:
        """Void choose(address): set the range of the hook for an instruction to be translated."""
        f = module.function("choose", 1)
        (address,) = f.parameters
        f.ret_if(f.ne(f.load(self._block, CodeHookTable.offset("everywhere")), 0), likely=False)
        hook = f.variable(f.call(self._find, address))
        chosen = f.variable(NOWHERE)
        with f.loop() as loop:
            loop.leave_if(f.eq(hook.get(), 0))
            with f.when(f.ne(f.load(hook.get(), CodeHook.offset("function")), 0)):
                chosen.set(address)
            hook.set(f.load(hook.get(), CodeHook.offset("next")))
        place = f.load(self._block, CodeHookTable.offset("range"))
        f.store(place, chosen.get())
        f.store(place, chosen.get(), 8)
        f.ret()

    def _make_code(self, module: Module) -> None:
        """Void code_hook(uc, address, size, data): call what is before an instruction."""
        f = module.function("code_hook", 4)
        uc, address, size, _ = f.parameters
        hook = f.variable(f.call(self._find, address))
        with f.loop() as loop:
            here = hook.get()
            loop.leave_if(f.eq(here, 0))
            function = f.load(here, CodeHook.offset("function"))
            with f.when(f.ne(function, 0), likely=True):
                f.call(function, uc, address, size, f.load(here, CodeHook.offset("data")))
            hook.set(f.load(here, CodeHook.offset("next")))
        f.ret()
