"""sdt:kernel:sched:sched_switch: the tracepoints of a Linux kernel.

A tracepoint is a nop where it is, and out of line a loop over the functions that have registered.
To switch it on,

1. an empty function of the kernel's own registers, with a mark of the tracepoint as its data;
2. the nop of each of its places becomes a jump (the table __jump_table has the places);
3. a breakpoint at the empty function fires the probe that its first argument, the mark, stands for,
   with the other arguments.

The function of a probe's name is the tracepoint's subsystem, as in /sys/kernel/tracing/events.

Source: Linux 6.12 include/linux/tracepoint.h, include/linux/jump_label.h, kernel/tracepoint.c.
"""

# ruff: noqa: ARG002  (the contract passes more than is needed)

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Protocol

from emu.bad_address import BadAddressError
from emu.engine.tracepoints import Fire, FireWhen, Register
from emu.frame import Frame
from emu.guest.linux_kernel.guest import MODULE, LinuxKernelGuest
from emu.patcher import Tracepoint as Patch
from emu.words import WORD_MASK
from providers.base import ArgumentDescription, Framework, Provider
from providers.linux_kernel.ports import PORTS
from providers.linux_kernel.sites import LONGEST, entry_site
from providers.linux_kernel.text import Fires, Hook, Text

OWNER: Final = "sdt"
_TRACEPOINT, _EVENT = "__tracepoint_", "event_"
_AFRAMES: Final = 2
_PASSED: Final = 5
# struct jump_entry: distances of the place and of its target, and the key with two flags.
_JUMP_ENTRY: Final = struct.Struct("<iiq")
_FLAGS: Final = 3
_WORD: Final = 8
_LONGEST_NAME: Final = 64
# struct tracepoint_func: function, data, priority; a list ends with a function that is 0.
_FUNCTION: Final = struct.Struct("<QQQ")
_EMPTY: Final = "tp_stub_func"
# Bytes of a list in the scratch memory, and how many others may have registered before.
_SLOT: Final = 128
_OTHERS: Final = 3


class TypeSource(Protocol):
    """Who knows the types of tracepoints."""

    def tracepoint(self, name: str) -> tuple[str, ...] | None:
        """Return the types of a tracepoint's arguments, None if they are not known."""
        ...


@dataclass(slots=True, eq=False)
class _Probe:
    name: str
    system: str
    address: int
    """Of its struct tracepoint."""
    probe_id: int = 0
    patches: list[Patch] = field(default_factory=list)
    slot: int = 0
    """Address of its list of functions, 0 while it is off."""
    before: int = 0
    """Address of the list before."""


class Tracepoints(Provider):
    """See the module; `matches(pattern, name)` says what a description's globs mean."""

    name = "sdt"

    def __init__(
        self,
        framework: Framework,
        guest: LinuxKernelGuest,
        text: Text,
        *,
        matches: Callable[[str, str], bool],
        types: TypeSource,
    ) -> None:
        self._framework = framework
        self._guest = guest
        self._text = text
        self._matches = matches
        self._types = types
        self._symbols = guest.facts.symbols
        self._known: set[str] = set()
        self._on: dict[int, int] = {}
        """Probes by the address of their lists, which is their mark."""
        self._place = 0
        """Where the breakpoint is."""
        self._hook = Hook(self._hit, self._fires)
        framework.register(self)

    def provide(self, description: tuple[str, str, str, str] | None) -> None:
        """Make the probes that a description may mean."""
        provider, module, function, name = description or ("", "", "", "")
        if not (self._matches(provider, self.name) and self._matches(module, MODULE)):
            return
        for symbol in self._symbols.starting(_TRACEPOINT):
            plain = symbol.name.removeprefix(_TRACEPOINT)
            if plain in self._known or not self._matches(name, plain):
                continue
            system = self._system(plain)
            if self._matches(function, system):
                self._known.add(plain)
                probe = _Probe(plain, system, symbol.value)
                probe.probe_id = self._framework.probe_create(self, MODULE, system, plain, _AFRAMES, probe)

    def _system(self, name: str) -> str:
        """Return a tracepoint's subsystem, "" if it has no event in tracefs."""
        event = self._symbols.get(_EVENT + name)
        if event is None:
            return ""
        btf, load = self._guest.facts.btf, self._guest.engine.load
        try:
            kind = load(event.value + btf.offset("trace_event_call", "class"), _WORD)
            text = load(kind + btf.offset("trace_event_class", "system"), _WORD)
            return self._guest.load(text, _LONGEST_NAME).split(b"\0", 1)[0].decode("ascii", "replace")
        except BadAddressError:
            return ""

    # -- switching on and off

    @cached_property
    def _places(self) -> Mapping[int, list[tuple[int, int]]]:
        """Address of a static key -> its places, with their targets."""
        found: dict[int, list[tuple[int, int]]] = {}
        for at, code, target, key in self._entries():
            where = at + 8 + (key & ~_FLAGS) & WORD_MASK
            found.setdefault(where, []).append((at + code & WORD_MASK, at + 4 + target & WORD_MASK))
        return found

    def _entries(self) -> Iterator[tuple[int, int, int, int]]:
        start, end = self._symbols.get("__start___jump_table"), self._symbols.get("__stop___jump_table")
        if start is None or end is None:
            return
        table = self._guest.load(start.value, end.value - start.value)
        for place, entry in enumerate(_JUMP_ENTRY.iter_unpack(table)):
            yield (start.value + _JUMP_ENTRY.size * place, *entry)

    def enable(self, probe_id: int, arg: _Probe) -> None:
        """Enable a tracepoint; if there is no room for it, it never fires."""
        offset = self._guest.facts.btf.offset
        functions = arg.address + offset("tracepoint", "funcs")
        slot = self._free_slot()
        empty = self._symbols.get(_EMPTY)
        if not slot or empty is None:
            return
        if not self._on:
            found = entry_site(self._text.isa, self._text.code(empty.value, 3 * LONGEST), empty.value)
            if found is None:
                return
            self._place = found[0]
            self._text.add(self._place, self._hook)
        arg.slot, arg.before = slot, self._guest.engine.load(functions, _WORD)
        mine = _FUNCTION.pack(empty.value, slot, 0)
        self._guest.store(slot, self._list(arg.before) + mine + bytes(_FUNCTION.size))
        self._guest.store(functions, struct.pack("<Q", slot))
        self._on[slot] = probe_id
        self._text.changed()
        for site, target in self._places.get(arg.address + offset("tracepoint", "key"), ()):
            jump = self._jump(site, target)
            if jump is not None:
                patch = self._guest.patcher.create(site, jump, OWNER)
                self._guest.patcher.install(patch)
                arg.patches.append(patch)

    def _free_slot(self) -> int:
        memory = self._guest.scratch
        return next((slot for slot in range(memory.start, memory.stop, _SLOT) if slot not in self._on), 0)

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

    def _hit(self, frame: Frame) -> None:
        arguments = self._text.isa.calling.arguments
        probe_id = self._on.get(frame.register(arguments[0]))
        if probe_id is not None:
            self._framework.probe(probe_id, *map(frame.register, arguments[1 : 1 + _PASSED]))

    def _fires(self) -> Fires:
        """Say what a hit does, for machine code."""
        calling = self._text.isa.calling
        arguments = tuple(map(Register, calling.arguments[1 : 1 + _PASSED]))
        steps = []
        for mark, probe_id in self._on.items():
            runs = self._framework.native_runs(probe_id)
            if not runs:
                return None
            steps.append(FireWhen(Fire(runs, arguments), calling.arguments[0], mark))
        return steps

    def _jump(self, site: int, target: int) -> bytes | None:
        """Return the jump that replaces a nop.

        None: there is no nop now, since the kernel has switched it on.
        """
        isa, code = self._text.isa, self._text.code(site, LONGEST)
        if code.startswith(isa.jump.nop):
            return isa.jump.patch(site, target)
        return PORTS[isa.name].jump(code, target - site)

    def disable(self, probe_id: int, arg: _Probe) -> None:
        """Switch it off."""
        for patch in arg.patches:
            self._guest.patcher.remove(patch)
            self._guest.patcher.forget(patch)
        arg.patches.clear()
        if arg.slot:
            functions = arg.address + self._guest.facts.btf.offset("tracepoint", "funcs")
            self._guest.store(functions, struct.pack("<Q", arg.before))
            del self._on[arg.slot]
            self._text.changed()
            arg.slot = 0
            if not self._on:
                self._text.remove(self._place, self._hook)

    def argument_description(self, probe_id: int, arg: _Probe, index: int) -> ArgumentDescription | None:
        """Return an argument's type."""
        types = self._types.tracepoint(arg.name)
        return ArgumentDescription(index, types[index]) if types is not None and index < len(types) else None

    def destroy(self, probe_id: int, arg: _Probe) -> None:
        """Forget a probe."""
        self._known.discard(arg.name)
