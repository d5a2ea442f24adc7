"""Functions that are called before chosen instructions: one hook of Unicorn's for all of them.

Unicorn keeps its code hooks in a list, each with its range of addresses.  It walks the list for
each instruction that it translates, and, if there is more than one hook, again whenever a hooked
instruction runs.  With a thousand hooks that takes microseconds.  A single hook is called directly,
and this engine has only one.

Its range is never larger than one instruction. Before the translator tests whether an instruction
is hooked, it tests whether the instruction is an exit (`emu.engine.qemu.exits`), by a function of
the engine. So that function looks the address up in a hash table and sets the hook's range: to the
address, or to an address that no code has. When the instruction runs, the hook finds the functions
to be called in the same table. The function also says whether the run may end behind the
instruction (`emu.engine.qemu.exit_checks`): behind a hooked one.

Source: Unicorn 2.1.4, include/uc_priv.h (struct hook, HOOK_EXISTS_BOUNDED), tcg-op.h
(gen_uc_tracecode); the order of the two questions was observed on each CPU.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from emu.engine.errors import EngineError
from emu.engine.hits.address_table import Addressed, AddressTable, TableHeader
from emu.engine.qemu.corrections import Corrected
from emu.engine.qemu.layout import ADVICE, HOOK_RANGE
from emu.engine.qemu.sticky_flags import Accrued
from emu.engine.qemu.temporaries import Temporaries
from emu.native.block import Block
from emu.support.plain import function_address

# An address that no code has.
NOWHERE: Final = 0xFFFF_FFFF_FFFF_FFF0
# The initial size of the table.
_SIZE: Final = 1 << 6
_HOOK: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32, ctypes.c_void_p)


class CodeHookTable(TableHeader):
    """The table of `HookedAddress`s and more data for `emu.engine.qemu.code_hooks_code`."""

    range: int
    """The address of the two words with the start and the end of the range of Unicorn's hook."""
    everywhere: int
    """1: Unicorn counts instructions: the range is all addresses, and does not change."""
    untested: int
    """The address of the byte that is 1 while code without tests is translated
    (`emu.engine.qemu.exit_checks`)."""
    always: int
    """The address of a function that is called before each instruction; 0: there is none."""


class HookedAddress(Addressed):
    """An instruction that is hooked."""

    calls: int
    """The address of the first `HookedCall`; 0: there is none."""
    size: int
    """Length in bytes of the breakpoint that is served there; 0: none is served."""
    code: int
    """The bytes of that breakpoint, as a number."""
    version: int
    """The version of the table of tracepoints in which `entry` was looked up; 0: of none."""
    entry: int
    """The address of the tracepoint there; 0: each hit looks it up."""


class HookedCall(Block):
    """A function that is called before an instruction."""

    function: int
    """U64 (uc, address, size, data); 0: it was removed."""
    data: int
    leaves: int
    """Whether it is called only while the place's breakpoint is there, and its result is used: 1
    means that it has set the pc, and that the block must be left."""
    next: int
    """The address of the next one; 0: there is none."""


class CodeHooks:
    """The functions that are called before instructions of one engine.

    After them a breakpoint may be served there, without its exception; only machine code does that
    (`emu.engine.hits.firing_code`).  And before an instruction that reads or replaces what
    floating point has accrued, that is moved to where it looks (`emu.isa.unicorn_model.Accruing`).
    """

    def __init__(
        self,
        accrued: Accrued | None = None,
        temporaries: Temporaries | None = None,
        corrected: Corrected | None = None,
        aligned: Callable[[int], None] | None = None,
    ) -> None:
        self._aligned = aligned
        self._accrued = accrued
        self._corrected = corrected
        self._temporaries = temporaries
        self.block = CodeHookTable()
        self._range = (ctypes.c_uint64 * 2)()
        self.callback: Any = _HOOK(self._run)
        """The hook in Python."""
        self._places: AddressTable[int, HookedAddress] = AddressTable(self.block, _SIZE)
        self._functions: dict[int, list[tuple[HookedCall, Callable[..., Any]]]] = {}
        self._counted = False
        self._always: Any = None
        self._ignored = ctypes.c_uint8()
        self._untested = self._ignored
        self.block.untested = ctypes.addressof(self._ignored)

    def leave_out_tests(self, mark: ctypes.c_uint8) -> None:
        """Leave out the tests behind instructions that are not hooked, by this mark."""
        self._untested = mark
        self.count_all(counted=self._counted)

    def attach(self, add: Callable[[int, int], int]) -> None:
        """Add Unicorn's hook by `add(begin, end)`, which returns its handle.

        Raises `EngineError` if this is not the Unicorn build whose layout is known.
        """
        handle = add(NOWHERE, NOWHERE + 1)
        self._range = (ctypes.c_uint64 * 2).from_address(handle + HOOK_RANGE)
        if list(self._range) != [NOWHERE, NOWHERE + 1]:
            raise EngineError(f"this build of unicorn keeps its hooks elsewhere; {ADVICE}")
        self.block.range = ctypes.addressof(self._range)
        self.choose(NOWHERE)

    def add(self, address: int, function: Any, data: int) -> None:
        """Call a function before the instruction at `address`, after that is translated again.

        `function` is a ctypes function of (uc, address, size, data), or the address of one as
        `ctypes.c_void_p`.
        """
        self._add(address, function, data)

    def add_first(self, address: int, function: Any, data: int) -> None:
        """Call a function before all that is called and served there, until `remove_first`."""
        here = self._functions.setdefault(address, [])
        call = HookedCall(function_address(function), data, next=here[0][0].address if here else 0)
        here.insert(0, (call, function))
        self._place(address).calls = call.address

    def remove_first(self, address: int) -> None:
        """Remove what `add_first` has added; outside of all hooks."""
        here = self._functions[address]
        self._place(address).calls = here.pop(0)[0].next

    def call_always(self, function: Any | None) -> None:
        """Call a function before each instruction that is translated from now on; None: no more."""
        self._always = function
        self.block.always = 0 if function is None else function_address(function)
        self.count_all(counted=self._counted)

    def refuse(self, address: int, code: bytes, function: Any, data: int) -> None:
        """Call a function there while it is this code; its result says whether the block is left."""
        self._add(address, function, data, leaves=True)
        self.serve(address, code)

    def _add(self, address: int, function: Any, data: int, *, leaves: bool = False) -> None:
        call = HookedCall(function_address(function), data, leaves)
        here = self._functions.setdefault(address, [])
        for number, (old, _) in enumerate(here):
            if not old.function:
                old.function, old.data, old.leaves = call.function, call.data, call.leaves
                here[number] = old, function
                return
        here.append((call, function))
        if len(here) > 1:
            here[-2][0].next = call.address
        else:
            self._place(address).calls = call.address

    def remove(self, address: int, function: Any) -> None:
        """Stop calling a function."""
        for call, _ in self._functions[address]:
            if call.function == function_address(function):
                call.function = 0

    def serve(self, address: int, code: bytes) -> bool:
        """Serve the breakpoint at an address from its next translation on, while it is this code.

        Returns False if it is served already.
        """
        place, number = self._place(address), int.from_bytes(code, "little")
        if (place.size, place.code) == (len(code), number):
            return False
        place.size, place.code = len(code), number
        return True

    def _place(self, address: int) -> HookedAddress:
        place = self._places.blocks.get(address)
        if place is not None:
            return place
        place = HookedAddress(address)
        self._places.set(address, place)
        if self._counted:
            self.count_all(counted=True)
        return place

    def choose(self, address: int) -> bool:
        """Set the range of the hook for an instruction that is about to be translated.

        It may also end the block there (`emu.engine.qemu.temporaries`).

        Returns whether the hook takes the instruction's place: a function is called there that
        leaves the block. The instruction is not an exit then (`emu.engine.qemu.exits`).
        """
        if self._temporaries is not None:
            self._temporaries.leave_room()
        if self._aligned is not None:
            self._aligned(address)
        calls = [call for call, _ in self._functions.get(address, ()) if call.function]
        hooked = bool(calls) or any(one is not None and one.asked(address) for one in (self._accrued, self._corrected))
        if not self.block.everywhere:
            self._range[0] = self._range[1] = address if hooked else NOWHERE
        if not self._counted and self._always is None:
            self._untested.value = not hooked
        return any(call.leaves for call in calls)

    def count_all(self, *, counted: bool) -> None:
        """Note whether Unicorn counts instructions: it then tests the range at each of them.

        So the range is all addresses, if anything may be hooked; and the run may end behind each.
        """
        self._counted = counted
        self._untested.value = 0
        each = counted or self._always is not None
        self.block.untested = ctypes.addressof(self._ignored if each else self._untested)
        looks = any(one is not None for one in (self._accrued, self._corrected))
        self.block.everywhere = self._always is not None or (counted and (looks or bool(self._places.blocks)))
        self._range[0], self._range[1] = (1, 0) if self.block.everywhere else (NOWHERE, NOWHERE)

    def _run(self, uc: int, address: int, size: int, _data: int) -> None:
        """Call the functions of an address."""
        if self._always is not None:
            self._always(uc, address, size, 0)
        for call, function in self._functions.get(address, ()):
            if call.function:
                function(uc, address, size, call.data)
        if self._accrued is not None:
            self._accrued.merge()
        if self._corrected is not None:
            self._corrected.reached(address)
