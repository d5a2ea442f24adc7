"""Special instructions, and functions that are called before instructions, by public hooks.

Where the translator cannot be asked to decide (`emu.engine.qemu.exits`,
`emu.engine.qemu.code_hooks`), a block is searched when it is entered.  If it begins with a special
instruction, the run ends there. If one is inside, a code hook is set at it, the block is forgotten,
and entered again.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import unicorn

from emu.engine.memory.memory import Memory
from emu.engine.memory.pages import PAGE
from emu.engine.portable import PortableCpu
from emu.engine.qemu.code_hooks import CodeHooks
from emu.engine.qemu.hooks import Hooks
from emu.support.bad_address import BadAddressError

_LONGEST: Final = 15
# Blocks whose special instructions are remembered.
_REMEMBERED: Final = 1 << 15
_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class PublicCodeHooks(CodeHooks):
    """Code hooks, each a hook of Unicorn's for one address."""

    def __init__(self) -> None:
        super().__init__()
        self._hooked: set[int] = set()
        self._add_hook: Callable[[int, int], int] = lambda _begin, _end: 0

    def attach(self, add: Callable[[int, int], int]) -> None:
        """Add the hooks by `add(begin, end)`."""
        self._add_hook = add

    def choose(self, address: int) -> bool:
        """Return whether a function that is called there takes the instruction's place."""
        return any(call.function and call.leaves for call, _ in self._functions.get(address, ()))

    def count_all(self, *, counted: bool) -> None:
        """Do nothing: each hook has its own range."""

    def _add(self, address: int, function: Any, data: int, *, leaves: bool = False) -> None:
        super()._add(address, function, data, leaves=leaves)
        if address not in self._hooked:
            self._hooked.add(address)
            self._add_hook(address, address)


class Scanner:
    """Searches the blocks of one CPU for special instructions."""

    def __init__(self, cpu: PortableCpu, memory: Memory, hooks: Hooks, code_hooks: PublicCodeHooks) -> None:
        self._isa = cpu.isa
        self._cpu = cpu
        self._memory = memory
        self._hooks = hooks
        self._code_hooks = code_hooks
        self._rules = cpu.model.special
        self._hooked: set[int] = set()
        self._hook = _HOOK(self._reached)
        self._exits: set[int] = set()
        self._crowded: set[int] = set()
        self._ignored = _HOOK(lambda _uc, _address, _size, _data: None)
        self._in_block = lru_cache(_REMEMBERED)(self._found_in)

    def enter(self, address: int, size: int) -> bool:
        """Search a block that is about to be executed; return whether it must not be now."""
        try:
            code = self._memory.read(address, size)
        except BadAddressError:  # the translator has read it; a page may be there no more
            return False
        found = self._in_block(code, self._rules.level(self._cpu))
        if not found:
            return False
        left = False
        for offset in found:
            place = address + offset
            if self._code_hooks.choose(place):
                continue
            if not offset:
                self._stop()
                return True
            if place not in self._hooked:
                self._hooked.add(place)
                self._hooks.add(unicorn.UC_HOOK_CODE, self._hook, place, place)
                left = True
        if left:
            self._cpu.uc.ctl_remove_cache(address, address + size)
            self._cpu.pc_word.value = address
        return left

    def search_page(self, page: int) -> None:
        """Keep code in a page from the translator that would abort it, or overflow its tables.

        Code that aborts it is made an exit.  A hook at each instruction makes blocks shorter: it is
        ten operations more, and a block ends when it has 4000.
        """
        public = self._cpu.public
        code = self._memory.read(page, PAGE)
        with suppress(BadAddressError):
            code += self._memory.read(page + PAGE, PAGE)
        for start, end in public.crowded(code):
            if page + end not in self._crowded:
                self._crowded.add(page + end)
                self._hooks.add(unicorn.UC_HOOK_CODE, self._ignored, page + start, page + end - 1)
        if public.fatal is None:
            return
        found = {page + match.start() for match in public.fatal.finditer(code[: PAGE + _LONGEST])} - self._exits
        if found:
            self._exits |= found
            self._cpu.uc.ctl_set_exits(sorted(self._exits))

    def at_exit(self, pc: int) -> bool:
        """Return whether a run ends at an address because of such code."""
        return pc in self._exits

    def _reached(self, _uc: int, address: int, size: int, _data: int) -> None:
        """Stop before an instruction, if it is still special."""
        try:
            code = self._memory.read(address, size)
        except BadAddressError:
            return
        if self._in_block(code, self._rules.level(self._cpu)) and not self._code_hooks.choose(address):
            self._stop()

    def _stop(self) -> None:
        self._cpu.halted.value = 1
        self._cpu.uc.emu_stop()

    def _found_in(self, code: bytes, _level: int) -> tuple[int, ...]:
        """Return the offsets of special instructions in a block."""

        def fetch(address: int) -> int:
            unit = code[address : address + self._rules.fetch_unit]
            if not unit:
                raise BadAddressError(address)
            return int.from_bytes(unit, "little")

        found, offset = [], 0
        while offset < len(code):
            try:
                if self._rules.found(self._cpu, fetch, offset):
                    found.append(offset)
            except BadAddressError:
                break
            offset += self._isa.instruction_length(code[offset : offset + _LONGEST]) or 1
        return tuple(found)
