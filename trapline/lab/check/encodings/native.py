"""Counting in machine code, compiled by LLVM for the tables of an ISA.

It counts some four million words a second.

It does the same as `trapline.lab.check.encodings.cells.count`, which is easier to read.  The rows
become comparisons with constants, and the cells a hash table with one lookup for each word.
"""

from __future__ import annotations

import ctypes
import importlib.util
from collections.abc import Iterator
from functools import cache
from importlib.resources import files
from string import Template
from typing import Any, Final

from trapline.lab.check.encodings.cells import EXEMPTION_BITS, NUMBER_BITS, ROW_BITS, Cell, exemptions
from trapline.lab.check.encodings.decoder import (
    BITS,
    BRACKET,
    CONTROL_BIT,
    CONTROL_GROUPS,
    LAYOUT,
    RELATIVE_BIT,
    RELATIVE_GROUP,
    SIZE_SHIFT,
    decoder,
)
from trapline.lab.check.encodings.space import FORMS, Chunk, Form
from trapline.lab.check.encodings.tables import tables

# The number of cells, a power of two.
SLOTS: Final = 1 << 14


def available() -> bool:
    """Return whether llvmlite is installed."""
    return importlib.util.find_spec("llvmlite") is not None


class _Chain:
    """Lines of IR that find the first of several (mask, value) that a word matches."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._count = 0

    def name(self) -> str:
        """Make a name."""
        self._count += 1
        return f"%s{self._count}"

    def put(self, operation: str) -> str:
        """Add an operation; return the name of its result."""
        name = self.name()
        self.lines.append(f"  {name} = {operation}")
        return name

    def first(self, rules: list[tuple[int, int, int]], otherwise: int) -> str:
        """Find the number of the first (mask, value, number) that matches."""
        found = str(otherwise)
        for mask, value, number in reversed(rules):
            masked = self.put(f"and i32 %word, {mask}")
            same = self.put(f"icmp eq i32 {masked}, {value}")
            found = self.put(f"select i1 {same}, i64 {number}, i64 {found}")
        return found


def _rows(isa: str, size: int) -> str:
    """Return the IR that makes the providers' part of a key, `%rows`, of `%word`."""
    chain = _Chain()
    packed = "0"
    word = (1 << 8 * size) - 1
    for provider, table in tables(isa).items():
        rows = [(row.mask & word, row.value, index) for index, row in enumerate(table)
                if row.length <= size and row.value <= word]  # fmt: skip
        exempt = [(one.mask & word, one.value, index) for index, one in enumerate(exemptions(isa, provider), 1)
                  if one.value <= word]  # fmt: skip
        for rules, bits in ((rows, ROW_BITS), (exempt, EXEMPTION_BITS)):
            assert all(number < 1 << bits for _, _, number in rules), "more rows than a key has room for"
            found = chain.first(rules, 0)
            shifted = chain.put(f"shl i64 {packed}, {bits}")
            packed = chain.put(f"or i64 {shifted}, {found}")
    chain.lines.append(f"  %rows = or i64 {packed}, 0")
    return "\n".join(chain.lines)


def _source(isa: str, form: Form) -> str:
    control = " ".join(f"i8 {group}, label %control" for group in CONTROL_GROUPS)
    libc: Any = ctypes.CDLL(None)
    return Template(files("trapline.lab.check.encodings").joinpath("count.ll").read_text()).substitute(
        ROWS=_rows(isa, form.size),
        CONTROL_GROUPS=control,
        RELATIVE_GROUP=RELATIVE_GROUP,
        SIZE=form.size,
        FORM_SHIFT=form.shift,
        FORM_LOW=form.low,
        DECODE=decoder(isa).function,
        STRCHR=ctypes.cast(libc.strchr, ctypes.c_void_p).value,
        INSN_SIZE=LAYOUT.size,
        INSN_TEXT=LAYOUT.text,
        INSN_DETAIL=LAYOUT.detail,
        GROUPS=LAYOUT.groups,
        GROUPS_COUNT=LAYOUT.groups_count,
        CONTROL_BIT=CONTROL_BIT,
        RELATIVE_BIT=RELATIVE_BIT,
        BRACKET=BRACKET,
        SIZE_SHIFT=SIZE_SHIFT,
        KEY_BITS=NUMBER_BITS + BITS,
        NUMBER_SHIFT=BITS,
        SLOT_MASK=SLOTS - 1,
    )


class Counter:
    """The compiled loop for one form of one ISA."""

    def __init__(self, isa: str, form: Form) -> None:
        import llvmlite.binding as llvm  # noqa: PLC0415  optional, and 50 ms

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        module = llvm.parse_assembly(_source(isa, form))
        module.verify()
        machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
        passes = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        passes.getModulePassManager().run(module, passes)
        self._engine: Any = llvm.create_mcjit_compiler(module, machine)
        self._engine.finalize_object()
        prototype = ctypes.CFUNCTYPE(ctypes.c_uint64, *(6 * [ctypes.c_uint64]))
        self._count = prototype(self._engine.get_function_address("count"))
        self._decoder = decoder(isa)

    def count(self, chunk: Chunk) -> Iterator[Cell]:
        """Count a chunk's words.  Raises OverflowError if there are more cells than slots."""
        slots = (ctypes.c_uint64 * (3 * SLOTS))()
        done = self._count(
            chunk.first, chunk.count, chunk.stride, self._decoder.handle, self._decoder.instruction,
            ctypes.addressof(slots),
        )  # fmt: skip
        if done != chunk.count:
            raise OverflowError(f"{chunk} has more than {SLOTS} kinds of encodings: enlarge SLOTS")
        for position in range(0, len(slots), 3):
            key, count, example = slots[position : position + 3]
            if count:
                yield Cell(key, count, example)


@cache
def _counter(isa: str, form: str) -> Counter:
    return Counter(isa, FORMS[isa][form])


def count(chunk: Chunk) -> Iterator[Cell]:
    """Count a chunk's words; one compiled loop for each form and process."""
    return _counter(chunk.isa, chunk.form).count(chunk)
