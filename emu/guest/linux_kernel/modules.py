"""The modules of a running kernel, read from its memory: names, code, symbols and types.

Source: Linux 6.12 include/linux/module.h (struct module, struct mod_kallsyms), kernel/bpf/btf.c
(struct btf_module, struct btf), kernel/params.c.
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from emu.engine.engine import Engine
from emu.guest.linux_kernel.files.btf import Btf, BtfError
from emu.guest.linux_kernel.files.facts import KernelFacts, is_function
from emu.guest.linux_kernel.files.tables import Placed, Table, Tables
from emu.guest.linux_kernel.kallsyms import Symbol
from emu.support.immutable import immutable
from emu.support.words import BadAddressError

_WORD: Final = 8
_NO_TABLE: Final = Placed(0, b"")
_LIVE: Final = 0
_NAME_MAX: Final = 56
_MOST: Final = 1024
# Elf64_Sym: name, info, other, section, value, size.
_SYMBOL: Final = struct.Struct("<IBBHQQ")
_OBJECT, _FUNCTION = 1, 2
_LONGEST_NAME: Final = 512
_TYPE_MASK: Final = 0xF
# The members of struct module that have the address of a table, and the number of its entries.
_TABLES: Final = {
    Table.JUMP_LABELS: ("jump_entries", "num_jump_entries"),
    Table.STATIC_CALLS: ("static_call_sites", "num_static_call_sites"),
    Table.EXCEPTIONS: ("extable", "num_exentries"),
}


# The operations of parameters (struct kernel_param_ops), with the types of their variables.
_PARAMETERS: Final = {
    f"param_ops_{name}": written
    for name, written in (
        ("byte", "unsigned char"),
        ("short", "short"),
        ("ushort", "unsigned short"),
        ("int", "int"),
        ("uint", "unsigned int"),
        ("hexint", "unsigned int"),
        ("long", "long"),
        ("ulong", "unsigned long"),
        ("ullong", "unsigned long long"),
        ("bool", "bool"),
        ("invbool", "bool"),
        ("charp", "char *"),
    )
}


class OrcPlace(NamedTuple):
    """The tables .orc_unwind_ip and .orc_unwind of a module."""

    pointer: int
    """The address of the member of struct module that has the address of the first."""
    ips: int
    entries: int
    entry_count: int


@immutable
class Module:
    """A loaded module."""

    name: str
    text: range
    functions: tuple[Symbol, ...]
    """The functions of the module, by address."""
    tables: Tables
    """Its tables about its code."""
    types: Btf | None
    """The types of the module; None if the kernel has none for it."""
    variables: Mapping[str, int]
    """The addresses of its variables."""
    parameters: Mapping[int, str]
    """The C types of the variables that are its parameters, by address."""
    orc: OrcPlace | None
    """Where its tables for stacks are; None: it has none."""

    def holding(self, address: int) -> Symbol | None:
        """Return the function that contains an address."""
        index = bisect_right(self.functions, address, key=lambda symbol: symbol.value) - 1
        found = self.functions[index] if index >= 0 else None
        return found if found is not None and address < found.value + max(1, found.size) else None


class Modules:
    """The modules of one kernel; each method reads the kernel's present memory."""

    def __init__(self, engine: Engine, facts: KernelFacts) -> None:
        self._engine = engine
        self._facts = facts
        self._known: dict[tuple[int, str], Module] = {}
        head = facts.symbols.get("modules")
        self._head = head.value if head is not None else 0

    def all(self) -> list[Module]:
        """Return the live modules, by their addresses; none if the kernel's structures are unknown."""
        try:
            return sorted(self._read(), key=lambda module: module.text.start)
        except (BadAddressError, BtfError):
            return []

    def named(self, name: str) -> Module | None:
        """Return the live module of a name, None if there is none."""
        return next((module for module in self.all() if module.name == name), None)

    def at(self, address: int) -> Module | None:
        """Return the module whose code contains an address.

        The list is read only for an address in no module that is known and still loaded.
        """
        known = ((key, module) for key, module in self._known.items() if address in module.text)
        found = next((module for (at, name), module in known if self._is_loaded(at, name)), None)
        return found or next((module for module in self.all() if address in module.text), None)

    def _is_loaded(self, at: int, name: str) -> bool:
        """Return whether the module at an address is live, has a name, and is in the list."""
        load, offset = self._engine.load, self._facts.btf.offset
        link = at + offset("module", "list")
        try:
            return (
                load(load(link, _WORD) + _WORD, _WORD) == link
                and load(at + offset("module", "state"), 4) == _LIVE
                and self._text(at + offset("module", "name"), _NAME_MAX) == name
            )
        except BadAddressError:
            return False

    def _read(self) -> Iterator[Module]:
        if not self._head:
            return
        load, offset = self._engine.load, self._facts.btf.offset
        link = offset("module", "list")
        at = load(self._head, _WORD)
        for _ in range(_MOST):
            if at == self._head:
                return
            module, at = at - link, load(at, _WORD)
            if load(module + offset("module", "state"), 4) == _LIVE:
                name = self._text(module + offset("module", "name"), _NAME_MAX)
                key = module, name
                if key not in self._known:
                    self._known[key] = self._module(module, name)
                yield self._known[key]

    def _module(self, at: int, name: str) -> Module:
        load, offset = self._engine.load, self._facts.btf.offset
        # MOD_TEXT is the first of the parts of a module's memory.
        part = at + offset("module", "mem")
        start = load(part + offset("module_memory", "base"), _WORD)
        text = range(start, start + load(part + offset("module_memory", "size"), 4))
        tables = {table: self._table(at, table) for table in _TABLES}
        functions, variables = self._symbols(at, text)
        return Module(
            name,
            text,
            functions,
            lambda table: tables.get(table, _NO_TABLE),
            self._types(at, name),
            variables,
            dict(self._parameters(at)),
            self._orc(at),
        )

    def _orc(self, at: int) -> OrcPlace | None:
        """Return where the tables for stacks are, which x86-64 has."""
        load, offset = self._engine.load, self._facts.btf.offset
        try:
            first, last = offset("module", "arch.orc_unwind_ip"), offset("module", "arch.orc_unwind")
            count = load(at + offset("module", "arch.num_orcs"), 4)
        except BtfError:
            return None
        return OrcPlace(at + first, load(at + first, _WORD), load(at + last, _WORD), count) if count else None

    def _parameters(self, at: int) -> Iterator[tuple[int, str]]:
        """Yield the address and type of each parameter of one value."""
        load, offset, known = self._engine.load, self._facts.btf.offset, self._facts.symbols
        try:
            first, count = load(at + offset("module", "kp"), _WORD), load(at + offset("module", "num_kp"), 4)
            size, ops, arg = (
                self._facts.btf.struct_size("kernel_param"),
                offset("kernel_param", "ops"),
                offset("kernel_param", "arg"),
            )
        except BtfError:
            return
        for entry in range(first, first + count * size, size):
            kind = known.holding(load(entry + ops, _WORD))
            written = _PARAMETERS.get(kind.name) if kind else None
            if written is not None:
                yield load(entry + arg, _WORD), written

    def _table(self, at: int, table: Table) -> Placed:
        """Return a table of the module whose struct module is at an address."""
        member, number = _TABLES[table]
        load, offset = self._engine.load, self._facts.btf.offset
        try:
            first, entries = load(at + offset("module", member), _WORD), load(at + offset("module", number), 4)
        except BtfError:
            return _NO_TABLE  # a kernel without such tables
        return Placed(first, self._engine.read(first, entries * table.value.entry.size)) if entries else _NO_TABLE

    def _symbols(self, at: int, text: range) -> tuple[tuple[Symbol, ...], dict[str, int]]:
        """Return the functions in a module's code, by address, and its variables."""
        load, offset = self._engine.load, self._facts.btf.offset
        table = load(at + offset("module", "kallsyms"), _WORD)
        symbols = load(table + offset("mod_kallsyms", "symtab"), _WORD)
        strings = load(table + offset("mod_kallsyms", "strtab"), _WORD)
        count = load(table + offset("mod_kallsyms", "num_symtab"), 4)
        entries = [*_SYMBOL.iter_unpack(self._engine.read(symbols, count * _SYMBOL.size))]
        last = max((name for name, *_ in entries), default=0)
        names = self._engine.read(strings, last) + self._text(strings + last, _LONGEST_NAME).encode() + b"\0"
        found: dict[int, Symbol] = {}
        variables: dict[str, int] = {}
        for name, info, _other, section, value, size in entries:
            kind = info & _TYPE_MASK
            if (kind == _FUNCTION and value in text and value not in found) or (kind == _OBJECT and section):
                written = names[name : names.index(b"\0", name)].decode("utf-8", "replace")
                if kind == _OBJECT:
                    variables.setdefault(written, value)
                elif is_function(symbol := Symbol(written, value, size, "t")):
                    found[value] = symbol
        return tuple(found[value] for value in sorted(found)), variables

    def _types(self, at: int, name: str) -> Btf | None:
        """Return the types of a module; the kernel copied them when it loaded the module."""
        load, offset, base = self._engine.load, self._facts.btf.offset, self._facts.btf
        head = self._facts.symbols.get("btf_modules")
        try:
            entry = load(head.value, _WORD) if head is not None else 0
            for _ in range(_MOST):
                if head is None or entry == head.value:
                    return None
                if load(entry + offset("btf_module", "module"), _WORD) == at:
                    btf = load(entry + offset("btf_module", "btf"), _WORD)
                    data, size = load(btf + offset("btf", "data"), _WORD), load(btf + offset("btf", "data_size"), 4)
                    return Btf(self._engine.read(data, size), f"{self._facts.image.digest}/{name}", base)
                entry = load(entry, _WORD)
        except (BadAddressError, BtfError):
            pass
        return None

    def _text(self, address: int, limit: int) -> str:
        """Return a string of the kernel's memory."""
        data = b""
        while len(data) < limit and b"\0" not in data:
            step = min(64, limit - len(data), 4096 - (address + len(data)) % 4096)
            data += self._engine.read(address + len(data), step)
        return data.partition(b"\0")[0].decode("utf-8", "replace")
