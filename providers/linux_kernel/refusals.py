"""The addresses of a running kernel and of its modules where Linux allows no kprobe.

    the blacklist                  functions; modules add theirs to it when they are loaded
    jump labels, static calls      the kernel rewrites them (`reserved`)
    the exception table            only an instruction that may not fault can run elsewhere

Source: Linux 6.12 kernel/kprobes.c (check_kprobe_address_safe, arch_check_ftrace_location).
"""

from __future__ import annotations

from emu.guest.linux_kernel.files.tables import Table, Tables, places
from emu.guest.linux_kernel.guest import LinuxKernelGuest
from emu.guest.linux_kernel.modules import Module
from providers.linux_kernel.blacklist import Blacklist
from providers.linux_kernel.reserved import reserved


class _Text:
    """The addresses of the kernel itself, or of a module."""

    def __init__(self, tables: Tables) -> None:
        self.rewritten = reserved(tables)
        self.may_fault = frozenset(places(tables, Table.EXCEPTIONS))


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
