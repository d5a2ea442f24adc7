"""The function of an event in machine code: `u64 run(first, arguments, core)`, as probes call it.

It checks whether the thread is traced, reads the arguments, appends the line to the buffer, and
keeps it if the filter matches.  If it cannot do a step, Python does the whole hit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from emu.native.block import Block
from emu.native.builder import Callee, Function, Module
from emu.native.guest import GuestCode
from emu.native.operations import Value
from trapline.ftrace import output
from trapline.ftrace.definition import Definition
from trapline.ftrace.native import filters, text, values
from trapline.ftrace.native.filters import Field, Filters
from trapline.ftrace.native.text import Text
from trapline.ftrace.native.values import Surroundings, Values

if TYPE_CHECKING:
    from emu.isa.base import Isa
    from trapline.ftrace.filter import TraceOptions

# Size in bytes of a line without the arguments: the prefix, and two addresses.
_LINE: Final = 256
_MICROSECOND: Final = 1000
_SECOND: Final = 1_000_000
# Functions of the guest that are used; if the guest has no such function, Python is called.
_NUMBERS: Final = ("now", "tid", "pid")
_PLACES: Final = ("execname", "user_pointer")


class BufferWords(Block):
    """The buffer of lines."""

    data: int
    """Its address in this process."""
    used: int
    """The number of bytes of lines in it."""
    size: int
    count: int
    """Lines that machine code has written, in all."""
    due: int
    """The virtual time after which a hit makes Python show the lines."""


def longest(definition: Definition) -> int:
    """Return the largest size in bytes of an event's line."""
    return _LINE + len(definition.event) + sum(map(values.most, definition.arguments))


class EventCode:
    """Makes the function of one event; `module` has it.

    Symbols: those of the guest's code; `buffer`, the `BufferWords`; `env`, the CPU state; `handle`
    and `register_read`, of Unicorn; `ask_drain()`, `ask_show(function)`, and `ask_now()`,
    `ask_tid()`, `ask_pid()`, which are Python functions.
    """

    def __init__(self, definition: Definition, isa: Isa, guest: GuestCode, options: TraceOptions) -> None:
        self.module = Module()
        self._definition = definition
        self._isa = isa
        self._wanted = options.wanted
        for name in (*_NUMBERS, *_PLACES):
            self._guest_function(guest, name)
        text.write_functions(self.module)
        filters.write_functions(self.module)
        self._write(options)

    def _guest_function(self, guest: GuestCode, name: str) -> None:
        """Write a function of the guest, or one that calls Python."""
        f = self.module.function(name, 2 if name == "user_pointer" else 0, local=True)
        writer = guest.functions.get(name)

        def slow() -> Value:
            return f.call(self.module.symbol(f"ask_{name}"), 0) if name in _NUMBERS else f.word(0)

        if writer is None:
            f.ret(slow())
        else:
            writer(f, slow)

    def _write(self, options: TraceOptions) -> None:
        f = self.module.function("run", 3)
        _first, arguments, _core = f.parameters
        buffer, definition = self.module.symbol("buffer"), self._definition
        tid = f.call(Callee("tid"))  # first, because this call also finds the name
        if options.tid is not None:
            f.ret_if(f.ne(tid, options.tid))
        if options.pid is not None:
            f.ret_if(f.ne(f.call(Callee("pid")), options.pid))
        function = f.load(arguments) if definition.returns else None
        pc = f.load(self.module.symbol("env"), 8 * self._isa.registers.slots[self._isa.registers.pc])

        def python() -> None:
            f.call(self.module.symbol("ask_show"), 0 if function is None else function)
            f.ret()

        end = f.add(f.load(buffer, BufferWords.offset("used")), longest(definition))
        with f.when(f.ugt(end, f.load(buffer, BufferWords.offset("size"))), likely=False):
            f.call(self.module.symbol("ask_drain"), 0)
        used = f.load(buffer, BufferWords.offset("used"))
        line = Text(f, f.add(f.load(buffer, BufferWords.offset("data")), used), python)
        start = line.cursor
        file_start = f.sub(pc if function is None else function, definition.offset)
        reader = Values(f, line, Surroundings(self._isa, self._isa.unicorn.ids, file_start, python))
        numbers = {one.name: reader.number(one) for one in definition.arguments}
        fields = {"common_pid": Field(tid)}
        for one in definition.arguments:
            number = numbers[one.name]
            signed = values.is_signed(one.type) and number is not None
            fields[one.name] = Field(0 if number is None or one.type.name == "char" else number, signed)
        early = self._wanted is not None and not filters.needs_text(self._wanted)
        if early:
            self._leave_unless_wanted(f, fields)
        now = f.call(Callee("now"))
        self._prefix(f, line, tid, now)
        line.constant(f"{definition.event}: (")
        line.hexadecimal(pc)
        if function is not None:
            line.constant(" <- ")
            line.hexadecimal(function)
        line.constant(")")
        for one in definition.arguments:
            line.constant(f" {one.name}=")
            begin = line.cursor
            reader.write(one, numbers[one.name])
            field = fields[one.name]
            fields[one.name] = Field(field.number, field.signed, begin, line.cursor)
        line.constant("\n")
        if self._wanted is not None and not early:
            self._leave_unless_wanted(f, fields)
        f.store(buffer, f.add(used, f.sub(line.cursor, start)), BufferWords.offset("used"))
        f.store(buffer, f.add(f.load(buffer, BufferWords.offset("count")), 1), BufferWords.offset("count"))
        with f.when(f.uge(now, f.load(buffer, BufferWords.offset("due"))), likely=False):
            f.call(self.module.symbol("ask_drain"), 0)
        f.ret()

    def _leave_unless_wanted(self, f: Function, fields: dict[str, Field]) -> None:
        assert self._wanted is not None, "asked only where there is a filter"
        f.ret_if(f.fails(Filters(f, fields).holds(self._wanted)))

    @staticmethod
    def _prefix(f: Function, line: Text, tid: Value, now: Value) -> None:
        """Write the text of `output.prefix`; the guest has one CPU."""
        line.name(f.call(Callee("execname")), output.NAME_WIDTH)
        line.constant("-")
        start = line.cursor
        line.number(tid)
        line.left(start, output.TID_WIDTH)
        line.constant(f" [000] {output.FLAGS} ")
        microseconds = f.udiv(now, _MICROSECOND)
        line.number(f.udiv(microseconds, _SECOND), least=5)
        line.constant(".")
        line.number(f.urem(microseconds, _SECOND), least=6, fill="0")
        line.constant(": ")


def has_native_form(definition: Definition, options: TraceOptions, size: int) -> bool:
    """Return whether machine code can write an event's lines into a buffer of `size` bytes."""
    if options.stacks or longest(definition) > size:
        return False
    return options.wanted is None or filters.has_native_form(options.wanted)
