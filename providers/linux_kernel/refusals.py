"""The addresses of a running kernel and of its modules where Linux allows no kprobe.

    the blacklist                  functions; modules add theirs to it when they are loaded
    jump labels, static calls      the kernel rewrites them while it runs: it would overwrite a
                                   breakpoint, whose removal would undo what it has written
    the exception table            only an instruction that may not fault can run elsewhere

The blacklist is read from the memory of a running kernel, or made from the image as the kernel does
when it boots: the functions that are marked NOKPROBE_SYMBOL, and some sections, which depend on the
ISA.

Source: Linux 6.12 kernel/kprobes.c (struct kprobe_blacklist_entry, within_kprobe_blacklist,
populate_kprobe_blacklist, check_kprobe_address_safe, arch_check_ftrace_location),
arch/*/kernel/kprobes*.c (arch_populate_kprobe_blacklist).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable, Iterable
from typing import Final, Self

from emu.guest.linux_kernel.files.facts import KernelFacts
from emu.guest.linux_kernel.files.tables import Table, Tables, addresses
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.kallsyms import Symbols
from emu.guest.linux_kernel.modules import Module
from emu.guest.linux_kernel.platforms.boards import BOARDS
from emu.support.words import BadAddressError

# list_head, start_addr, end_addr
_ENTRY: Final = struct.Struct("<4Q")
_MOST: Final = 1 << 16
# The sections that no kernel probes; those of an ISA are in `Board.unprobed`.
SECTIONS: Final = ("kprobes", "noinstr")


class Blacklist:
    """The list; it is empty if the kernel has no kprobes."""

    def __init__(self, areas: Iterable[tuple[int, int]] = (), symbols: Symbols | None = None) -> None:
        """Take areas of forbidden addresses, (start, end).

        With `symbols`, the parts of a forbidden function (`nmi_handle.part.0`) are forbidden too.
        """
        self._symbols = symbols
        self._areas = _merged(sorted(areas))
        self._starts = [start for start, _ in self._areas]

    @classmethod
    def from_memory(cls, head: int, read: Callable[[int, int], bytes], symbols: Symbols | None = None) -> Self:
        """Read the list of a running kernel; `head`: address of its head, 0: there is none."""
        areas: list[tuple[int, int]] = []
        try:
            (at,) = struct.unpack("<Q", read(head, 8)) if head else (head,)
            while at != head and len(areas) < _MOST:
                at, _, start, end = _ENTRY.unpack(read(at, _ENTRY.size)) if at else (head, 0, 0, 0)
                areas.append((start, end))
        except BadAddressError:
            pass
        return cls(areas, symbols)

    @classmethod
    def from_image(cls, facts: KernelFacts) -> Self:
        """Make the list of a kernel that does not run."""
        if not facts.table(Table.BLACKLIST).content:
            return cls()
        names = (*SECTIONS, *BOARDS[facts.image.isa].unprobed)
        sections = (facts.between(f"__{name}_text_start", f"__{name}_text_end") for name in names)
        return cls.from_tables(facts.table, facts.symbols, sections)

    @classmethod
    def from_tables(cls, tables: Tables, symbols: Symbols, sections: Iterable[range]) -> Self:
        """Make the list of a kernel or a module: its marked functions, and whole sections."""
        marked = (symbols.holding(address) for address in addresses(tables, Table.BLACKLIST))
        areas = [(one.value, one.value + one.size) for one in marked if one is not None]
        return cls([*areas, *((part.start, part.stop) for part in sections if part)], symbols)

    def __contains__(self, address: int) -> bool:
        if self._holds(address):
            return True
        found = self._symbols.holding(address) if self._symbols is not None else None
        if self._symbols is None or found is None or "." not in found.name:
            return False
        whole = self._symbols.get(found.name.partition(".")[0])
        return whole is not None and self._holds(whole.value)

    def _holds(self, address: int) -> bool:
        index = bisect_right(self._starts, address) - 1
        return index >= 0 and address < self._areas[index][1]

    def areas(self) -> list[tuple[int, int]]:
        """Return the areas by address; no two of them touch."""
        return self._areas


def _merged(areas: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Join areas that overlap: the list has whole sections and also functions in them."""
    merged: list[tuple[int, int]] = []
    for start, end in areas:
        if merged and start <= merged[-1][1]:
            merged[-1] = merged[-1][0], max(end, merged[-1][1])
        else:
            merged.append((start, end))
    return merged


def reserved(tables: Tables) -> frozenset[int]:
    """Return the addresses of the instructions that a kernel, or a module, rewrites."""
    return frozenset({*addresses(tables, Table.JUMP_LABELS), *addresses(tables, Table.STATIC_CALLS)})


class _Text:
    """The addresses of the kernel itself, or of a module."""

    def __init__(self, tables: Tables) -> None:
        self.rewritten = reserved(tables)
        self.may_fault = frozenset(addresses(tables, Table.EXCEPTIONS))


class Refusals:
    """The addresses of one running kernel that refuse a kprobe, each with the reason."""

    def __init__(self, guest: LinuxKernelGuest) -> None:
        self._guest = guest
        self._symbols = guest.facts.symbols
        self._kernel = _Text(guest.facts.table)
        self._modules: dict[tuple[str, int], _Text] = {}
        self._blacklist = self._read()
        self._loaded: frozenset[tuple[str, int]] = frozenset()

    def forbids(self, address: int) -> bool:
        """Return whether no probe may be at an address."""
        return bool(self.reason(address))

    def reason(self, address: int) -> str:
        """Return what forbids a probe at an address; "": nothing does."""
        if address in self._text(address).rewritten:
            return "jump label or static call"
        return "blacklist" if address in self._blacklisted(address) else ""

    def may_fault(self, address: int) -> bool:
        """Return whether the instruction at an address has an entry in the exception table."""
        return address in self._text(address).may_fault

    def _read(self) -> Blacklist:
        head = self._symbols.get("kprobe_blacklist")
        return Blacklist.from_memory(head.value if head else 0, self._guest.load, self._symbols)

    def _blacklisted(self, address: int) -> Blacklist:
        """Return the list; that of the kernel's own text never changes."""
        if address not in self._guest.facts.text:
            loaded = frozenset(map(_key, self._guest.modules.all()))
            if loaded != self._loaded:
                self._loaded, self._blacklist = loaded, self._read()
        return self._blacklist

    def _text(self, address: int) -> _Text:
        module = None if address in self._guest.facts.text else self._guest.modules.at(address)
        if module is None:
            return self._kernel
        key = _key(module)
        if key not in self._modules:
            self._modules[key] = _Text(module.tables)
        return self._modules[key]


def _key(module: Module) -> tuple[str, int]:
    return module.name, module.text.start
