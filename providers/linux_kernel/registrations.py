"""Listeners at the tracepoints of a Linux kernel, for the providers that are based on them.

A tracepoint is a nop in the code, and out of line a loop over the registered functions.  To switch
it on,

1. an empty function of the kernel is registered, with a mark of the tracepoint as its data;
2. the nop of each of its places becomes a jump (the table __jump_table has the places);
3. a breakpoint at the empty function calls the listeners of the tracepoint with the other
   arguments; the first argument, the mark, identifies the tracepoint.

Source: Linux 6.12 include/linux/tracepoint.h, include/linux/jump_label.h, kernel/tracepoint.c.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from emu.engine.hit_steps import Argument, Fire, FireWhen, Register
from emu.frame import Frame
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.guest.linux_kernel.tables import Placed, Table
from emu.patcher import Tracepoint as Patch
from emu.words import WORD_MASK
from providers.linux_kernel.ports import PORTS
from providers.linux_kernel.sites import LONGEST, entry_site
from providers.linux_kernel.text import Fires, Hook, Text

OWNER: Final = "tracepoint"
PREFIX: Final = "__tracepoint_"
# The pointers to tracepoints, in kernels whose lists of them have addresses (__TRACEPOINT_ENTRY).
_POINTER: Final = PREFIX + "ptr_"
_PASSED: Final = 5
# struct jump_entry: distances of the place and of its target, and the key with two flags.
_JUMP_ENTRY: Final = struct.Struct("<iiq")
_FLAGS: Final = 3
_WORD: Final = 8
# struct tracepoint_func: function, data, priority; a list ends with a function that is 0.
_FUNCTION: Final = struct.Struct("<QQQ")
_EMPTY: Final = "tp_stub_func"
# Size of a list in the scratch memory, and the number of other functions that may be in it.
_SLOT: Final = 128
_OTHERS: Final = 3


@dataclass(frozen=True, slots=True, eq=False)
class Listener:
    """The actions at every hit of a tracepoint."""

    call: Callable[[tuple[int, ...]], None]
    """Takes the tracepoint's arguments."""
    fire: Callable[[tuple[Argument, ...]], Fire | None] = lambda _arguments: None
    """Describes the same for machine code, from the locations of the arguments; None: only Python
    can do it."""


@dataclass(slots=True, eq=False)
class _Registration:
    listeners: list[Listener]
    slot: int
    """Address of the tracepoint's list of functions, which is its mark."""
    before: int
    """Address of the previous list."""
    patches: list[Patch] = field(default_factory=list)


def tracepoint_name(symbol: str) -> str:
    """Return the name of the tracepoint that a symbol is, "" if it is something else."""
    is_one = symbol.startswith(PREFIX) and not symbol.startswith(_POINTER)
    return symbol.removeprefix(PREFIX) if is_one else ""


class Registrations:
    """The tracepoints of one kernel that are switched on."""

    def __init__(self, guest: LinuxKernelGuest, text: Text) -> None:
        self._guest = guest
        self._text = text
        self._symbols = guest.facts.symbols
        self._on: dict[tuple[str, str], _Registration] = {}
        self._place = 0
        """The address of the breakpoint."""
        self._hook = Hook(self._hit, self._fires)

    def has(self, name: str) -> bool:
        """Return whether the kernel has a tracepoint of this name."""
        return self._symbols.get(PREFIX + name) is not None

    def add(self, name: str, listener: Listener, module: str = MODULE) -> bool:
        """Call a listener at every hit of a module's tracepoint.

        False: there is no room to switch it on.
        """
        known = self._on.get((module, name))
        if known is None:
            known = self._switch_on(self._address(name, module))
            if known is None:
                return False
            self._on[module, name] = known
        known.listeners.append(listener)
        self._text.changed()
        return True

    def remove(self, name: str, listener: Listener, module: str = MODULE) -> None:
        """Remove a listener; with the last one the tracepoint is switched off."""
        known = self._on[module, name]
        known.listeners.remove(listener)
        if not known.listeners:
            del self._on[module, name]
            self._switch_off(self._address(name, module), known)
        self._text.changed()

    # -- switching on and off

    def _address(self, name: str, module: str) -> int:
        """Return the address of a tracepoint's structure; 0: its module has been removed."""
        if module == MODULE:
            return self._symbols.address(PREFIX + name)
        found = self._guest.modules.named(module)
        return 0 if found is None else found.variables.get(PREFIX + name, 0)

    def _member(self, tracepoint: int, member: str) -> int:
        """Return the address of a member of a tracepoint's structure."""
        return tracepoint + self._guest.facts.btf.offset("tracepoint", member)

    def _switch_on(self, tracepoint: int) -> _Registration | None:
        slot, empty = self._free_slot(), self._symbols.get(_EMPTY)
        if not slot or empty is None or not tracepoint:
            return None
        if not self._on:
            found = entry_site(self._text.isa, self._text.code(empty.value, 3 * LONGEST), empty.value)
            if found is None:
                return None
            self._place = found[0]
            self._text.add(self._place, self._hook)
        functions = self._member(tracepoint, "funcs")
        made = _Registration([], slot, self._guest.engine.load(functions, _WORD))
        mine = _FUNCTION.pack(empty.value, slot, 0)
        self._guest.store(slot, self._list(made.before) + mine + bytes(_FUNCTION.size))
        self._guest.store(functions, struct.pack("<Q", slot))
        for site, target in self._places(self._member(tracepoint, "key")):
            jump = self._jump(site, target)
            if jump is not None:
                patch = self._guest.patcher.create(site, jump, OWNER)
                self._guest.patcher.install(patch)
                made.patches.append(patch)
        return made

    def _switch_off(self, tracepoint: int, known: _Registration) -> None:
        for patch in known.patches:
            self._guest.patcher.remove(patch)
            self._guest.patcher.forget(patch)
        if tracepoint:
            self._guest.store(self._member(tracepoint, "funcs"), struct.pack("<Q", known.before))
        if not self._on:
            self._text.remove(self._place, self._hook)

    def _places(self, key: int) -> Iterator[tuple[int, int]]:
        """Yield the places of a static key with their targets: a module may use the kernel's keys."""
        yield from self._of_kernel.get(key, ())
        for module in self._guest.modules.all():
            yield from _by_key(module.tables(Table.JUMP_LABELS)).get(key, ())

    @cached_property
    def _of_kernel(self) -> Mapping[int, list[tuple[int, int]]]:
        start, end = self._symbols.get("__start___jump_table"), self._symbols.get("__stop___jump_table")
        if start is None or end is None:
            return {}
        return _by_key(Placed(start.value, self._guest.load(start.value, end.value - start.value)))

    def _free_slot(self) -> int:
        memory, taken = self._guest.scratch, {known.slot for known in self._on.values()}
        return next((slot for slot in range(memory.start, memory.stop, _SLOT) if slot not in taken), 0)

    def _list(self, address: int) -> bytes:
        """Return the functions that have registered, without the end of their list."""
        found = b""
        while address and len(found) < _OTHERS * _FUNCTION.size:
            entry = self._guest.load(address, _FUNCTION.size)
            if not int.from_bytes(entry[:_WORD], "little"):
                break
            found += entry
            address += _FUNCTION.size
        return found

    def _jump(self, site: int, target: int) -> bytes | None:
        """Return the jump that replaces a nop.

        None: there is no nop, because the kernel has switched it on.
        """
        isa, code = self._text.isa, self._text.code(site, LONGEST)
        if code.startswith(isa.jump.nop):
            return isa.jump.patch(site, target)
        return PORTS[isa.name].jump(code, target - site)

    # -- hits

    def _hit(self, frame: Frame) -> None:
        names = self._text.isa.calling.arguments
        mark = frame.register(names[0])
        known = next((one for one in self._on.values() if one.slot == mark), None)
        if known is not None:
            arguments = tuple(map(frame.register, names[1 : 1 + _PASSED]))
            for listener in tuple(known.listeners):
                listener.call(arguments)

    def _fires(self) -> Fires:
        """Describe a hit for machine code."""
        names = self._text.isa.calling.arguments
        arguments = tuple(map(Register, names[1 : 1 + _PASSED]))
        steps = []
        for known in self._on.values():
            for listener in known.listeners:
                fire = listener.fire(arguments)
                if fire is None:
                    return None
                steps.append(FireWhen(fire, names[0], known.slot))
        return steps


def _by_key(table: Placed) -> Mapping[int, list[tuple[int, int]]]:
    """Return the places of static keys, with their targets, by the address of the key."""
    found: dict[int, list[tuple[int, int]]] = {}
    for number, (code, target, key) in enumerate(_JUMP_ENTRY.iter_unpack(table.content)):
        at = table.start + _JUMP_ENTRY.size * number
        where = at + 8 + (key & ~_FLAGS) & WORD_MASK
        found.setdefault(where, []).append((at + code & WORD_MASK, at + 4 + target & WORD_MASK))
    return found
