"""QEMU's helpers that are replaced: functions of translated code that compute what no CPU does.

The library refers to its own helpers by a table of addresses, which the dynamic linker has filled,
and so does the list from which each engine learns what a helper takes.  Both are changed, before
the first engine of that CPU is made: all engines of a process have the same helpers.  A replacement
is machine code, and calls the original one (`UnicornModel.helpers`).

Source: Unicorn 2.1.4, qemu/tcg/tcg.c (tcg_context_init, all_helpers; tcg_gen_callN); the addresses
were observed.
"""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

from emu.engine.qemu import rewriters
from emu.engine.qemu.library import address
from emu.isa.unicorn_model import Corrections, UnicornModel
from emu.native.compile import compiled
from emu.native.libc import libc
from emu.native.link import Linked
from emu.unicorn_layout import library

# The names of the replacements, and of the library's own functions that they call.
_HELPER: Final = re.compile(r"^define i64 @(helper_\w+)\(", re.MULTILINE)
_CALLED: Final = re.compile(r'^declare i64 @"library\.(\w+)"', re.MULTILINE)
_WORD: Final = 8


@cache
def install(target: str, text: str) -> bool:
    """Replace the helpers that a text defines, for all engines of a CPU that are made from now on.

    Returns whether that is done here: a rewriter's name switches it off.
    """
    if not text or not rewriters.runs(rewriters.QEMU_HELPERS):
        return False
    code = compiled("helpers", text.encode(), lambda: text)
    linked = Linked(code, {f"library.{name}": address(f"{name}_{target}") for name in _CALLED.findall(text)})
    _KEPT.append(linked)
    _replace({address(f"{name}_{target}"): linked.address(name) for name in _HELPER.findall(text)})
    return True


# The code of the replacements, which the library calls until the process ends.
_KEPT: Final[list[Linked]] = []


def installed(model: UnicornModel) -> bool:
    """Replace a CPU's helpers, and return whether that is done here."""
    return install(model.target, model.helpers)


def corrections(model: UnicornModel) -> Corrections | None:
    """Return a CPU's corrections; None: none, or none without the helpers that they go with."""
    rules = model.corrections
    return None if rules is None or (rules.inline and not installed(model)) else rules


def _replace(new: Mapping[int, int]) -> None:
    """Replace each address in the library's tables."""
    for start, end in _tables():
        content = ctypes.string_at(start, end - start)
        found = [(at, function) for old, function in new.items() for at in _places(content, old)]
        if not found:
            continue
        place, size = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
        libc().mprotect(place, size, mmap.PROT_READ | mmap.PROT_WRITE)
        for at, function in found:
            ctypes.c_uint64.from_address(start + at).value = function
        libc().mprotect(place, size, mmap.PROT_READ)


def _places(content: bytes, old: int) -> Iterable[int]:
    word, at = old.to_bytes(_WORD, "little"), -1
    while (at := content.find(word, at + 1)) >= 0:
        if at % _WORD == 0:
            yield at


def _tables() -> Iterable[tuple[int, int]]:
    """Yield the addresses of the tables, which the dynamic linker has made read-only (RELRO).

    That is the last mapping of the file without a right to write, behind the constants.
    """
    path = str(library.this().path.resolve())
    maps = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    constant = [fields[0] for fields in maps if fields[-1] == path and fields[1].startswith("r--")]
    for text in constant[-1:]:
        start, end = (int(number, 16) for number in text.split("-"))
        yield start, end
