"""The tables by which a kernel, or a module of it, says where its code is special.

A kernel's linker script has symbols around each table; in a module's file it is a section.  A table
has addresses, or distances from the addresses where they are stored.

Source: Linux 6.12 include/asm-generic/vmlinux.lds.h, kernel/module/main.c (find_module_sections),
include/linux/{jump_label,static_call_types,kprobes}.h, arch/*/include/asm/extable.h.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple

from emu.support.words import WORD_MASK


class Form(NamedTuple):
    """A table of kernels."""

    start: str
    """The symbol of its start in a kernel."""
    end: str
    sections: tuple[str, ...]
    """The possible names of its section in a module."""
    entry: struct.Struct
    """An entry: its first number says where the code is."""
    absolute: bool = False
    """Whether that number is the address, not the distance."""


class Table(Enum):
    """The tables."""

    JUMP_LABELS = Form("__start___jump_table", "__stop___jump_table", ("__jump_table",), struct.Struct("<i12x"))
    STATIC_CALLS = Form(
        "__start_static_call_sites", "__stop_static_call_sites", (".static_call_sites",), struct.Struct("<i4x")
    )
    EXCEPTIONS = Form("__start___ex_table", "__stop___ex_table", ("__ex_table",), struct.Struct("<i8x"))
    """Instructions that may fault."""
    PADS = Form(
        "__start_mcount_loc",
        "__stop_mcount_loc",
        ("__mcount_loc", "__patchable_function_entries"),
        struct.Struct("<Q"),
        absolute=True,
    )
    """Ftrace's pads.  On x86-64 the second section has something else."""
    RETURNS = Form("__return_sites", "__return_sites_end", (".return_sites",), struct.Struct("<i"))
    """The jumps to the return thunk."""
    BLACKLIST = Form(
        "__start_kprobe_blacklist",
        "__stop_kprobe_blacklist",
        ("_kprobe_blacklist",),
        struct.Struct("<Q"),
        absolute=True,
    )
    """The functions that are marked NOKPROBE_SYMBOL."""


class Placed(NamedTuple):
    """A table in a kernel or a module."""

    start: int
    """Its address; 0 if there is no such table."""
    content: bytes


# Returns a table; an empty one if there is none.
Tables = Callable[[Table], Placed]


def addresses(tables: Tables, table: Table) -> Iterator[int]:
    """Yield the addresses of the code that a table is about."""
    form, (start, content) = table.value, tables(table)
    whole = len(content) // form.entry.size * form.entry.size
    for number, (value,) in enumerate(form.entry.iter_unpack(content[:whole])):
        yield value if form.absolute else start + form.entry.size * number + value & WORD_MASK
