"""Symbols of the traced process: found in its objects, typed by its files, read from its memory."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from emu.displaced.cpu_core import CpuCore
from emu.elf.file import ElfError
from emu.elf.symbols import Binding, Symbol, SymbolType
from tests.support.fake_guest import FakeGuest
from tests.trapline.d.support import compile_text, tag_of
from trapline import dof
from trapline.d.check.scopes import Globals
from trapline.d.types.names import NoNames
from trapline.d.types.types import INT
from trapline.dof import encode
from trapline.framework.device.dtrace import DTrace
from trapline.types import ProcessNames

BIAS = 0x1000
PLACES = {"counter": 0x40_0010, "origin": 0x40_0020, "untyped": 0x40_0100}
ORIGIN = PLACES["origin"] + BIAS


class File:
    """An ELF file with a few symbols."""

    def named(self, name):
        if name == "origin":
            return [Symbol(name, ORIGIN + at, 8, SymbolType.OBJECT, Binding.LOCAL, 1, file=f"{at}.c") for at in (0, 64)]
        return [Symbol(name, PLACES[name], 8, SymbolType.OBJECT, Binding.GLOBAL, 1)] if name in PLACES else []

    def symbol(self, name):
        if name not in PLACES:
            raise ElfError(name)
        return self.named(name)[0]._replace(value=PLACES[name])


def types_of(_image):
    names = Globals()
    compile_text("struct point { int x; struct point *next; char text[8]; }; struct point origin;", names=names)
    known = {variable.name: variable.type for variable in names.variables.values()} | {"counter": INT}
    return SimpleNamespace(variable=known.get)


@pytest.fixture
def asked():
    return []


@pytest.fixture
def names(asked):
    objects = [SimpleNamespace(name=name, path=f"/{name}", image=File(), bias=BIAS) for name in ("prog", "libx.so.1")]
    return Globals(foreign=ProcessNames(NoNames(), lambda: asked.append(1) or objects, types_of))


def record(text, names):
    """Run BEGIN in a process whose memory has the symbols; return the record's data."""
    guest = FakeGuest()
    guest.poke_user(PLACES["counter"] + BIAS, (42).to_bytes(4, "little"))
    guest.poke_user(ORIGIN, (7).to_bytes(8, "little") + ORIGIN.to_bytes(8, "little") + b"abc\0\0\0\0\0")
    device = DTrace(guest, CpuCore(), dof).open()
    device.set_option("bufsize", 1 << 14)
    device.enable(encode(compile_text(f"BEGIN {{ {text} }}", names=names, probes=device.probes)))
    device.go()
    return device.buffer_snapshot(0).data[16:]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("``counter", 42),
        ("prog``counter + libx``counter", 84),
        ("``origin.x", 7),
        ("``origin.next->next->x", 7),
        ("(&``origin)->x", 7),
        ("*(&``counter)", 42),
        ("(uintptr_t)&``origin", ORIGIN),
        ("sizeof(``origin)", 24),
        ("``origin.text[1]", ord("b")),
        ("*``origin.text", ord("a")),
        ("``origin.next->text[2]", ord("c")),
        ("``origin.next == &``origin", 1),
    ],
)
def test_a_symbol_of_the_process_is_read_from_its_memory(expression, value, names):
    assert int.from_bytes(record(f"trace((int64_t)({expression}));", names)[:8], "little") == value


@pytest.mark.parametrize("expression", ["``origin.text", "stringof(``origin.text)", "``origin.next->text"])
def test_a_text_of_the_process_is_recorded_from_its_memory(expression, names):
    assert record(f"trace({expression});", names)[:4] == b"abc\0"


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("trace(``nosuch)", "D_IDENT_UNDEF"),
        ("trace(other``counter)", "D_IDENT_UNDEF"),
        ("trace(``untyped)", "D_SYM_NOTYPES"),
        ("``counter = 1", "D_OP_WRITE"),
    ],
)
def test_what_cannot_be_read_has_its_tag(text, tag, names):
    assert tag_of(f"BEGIN {{ {text}; }}", names=names) == tag


def test_which_of_several_symbols_is_taken_is_told_once():
    told = []
    objects = [SimpleNamespace(name="prog", path="/prog", image=File(), bias=BIAS)]
    names = Globals(foreign=ProcessNames(NoNames(), lambda: objects, types_of, told.append))
    assert tag_of("BEGIN { trace(``origin.x + ``origin.x + ``counter) }", names=names) == ""
    assert told == ["prog has 2 symbols 'origin': origin@0.c is taken, not origin@64.c"]


def test_the_process_is_not_looked_for_until_a_program_names_it(names, asked):
    assert tag_of("BEGIN { trace(`counter) }", names=names) == "D_IDENT_UNDEF"
    assert not asked
    assert tag_of("BEGIN { trace(``counter) }", names=names) == ""
    assert asked
