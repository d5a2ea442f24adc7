"""Events in machine code: the same lines as Python's, between the same output of the program."""

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from emu.native import available
from tests.emu.guest.linux.support import start
from trapline.ftrace.definition import parse
from trapline.ftrace.filter import TraceOptions, parse_filter
from trapline.ftrace.native.event import has_native_form
from trapline.ftrace.native.lines import SIZE
from trapline.ftrace.uprobe_events import EventTrace, symbol_offsets
from trapline.machine.linux_machine import EvalTime

pytestmark = pytest.mark.skipif(not available(), reason="llvmlite is not installed")

ARGUMENTS = {
    # A register, a pointer that is one, the flags, and the stack pointer's name.
    "x86_64": ("ax", "di", "flags", "sp"),
    "i386": ("ax", "dx", "flags", "sp"),
    "aarch64": ("x0", "x0", "pstate", "sp"),
    "riscv64": ("a0", "a0", "s1", "sp"),
}


def traced(isa, case, lines, options, engine, monkeypatch):
    """The lines and the program's output in the order in which they came, and the trace."""
    monkeypatch.setenv("TRAPLINE_ENGINE", engine)
    path = str(images.linux(ISAS[isa], "zoo"))
    machine, output = start(isa, [path, case], evaltime=EvalTime.EXEC)
    shown = []
    write = output.extend
    trace = EventTrace(machine.guest, lambda text: shown.append(text) or write(text.encode()), options)
    for line, symbol in lines:
        loaded = machine.guest.objects.of(machine.guest.kernel.first)[0]
        (offset,) = symbol_offsets(loaded.image, symbol)
        trace.add(parse(line.format(place=f"{path}:{offset:#x}"), ISAS[isa]))
    machine.guest.run(None)
    trace.finish()
    return bytes(output).decode(), "".join(shown), trace.count, machine.guest.engine.instructions, len(shown)


def same(isa, case, lines, monkeypatch, **options):
    chosen = TraceOptions(**options)
    python = traced(isa, case, lines, chosen, "reference", monkeypatch)
    native = traced(isa, case, lines, chosen, "native", monkeypatch)
    assert native[:4] == python[:4]
    for line in python[1].splitlines(keepends=True):
        assert line in native[0]
    return python, native


@pytest.mark.parametrize("isa", ISAS)
def test_lines_are_the_same_in_the_same_places(isa, monkeypatch):
    register, pointer, flags, sp = ARGUMENTS[isa]
    lines = [
        (f"p:zoo/fib {{place}} n=%{register}:s32 %{register} %{register}:char f=%{flags} b=%{register}:b3@1/8", "fib"),
        ("r:zoo/fib_return {place} $retval:s32 v=$retval:u16 $comm c=\\42:u8", "fib"),
        (f"p:odd {{place}} $stack0 $stack a=+0(%{sp}):x8[3] @+0:u8 +0(%{pointer}):string m=\\-1:s16", "is_odd"),
    ]
    python, native = same(isa, "recursion", lines, monkeypatch)
    assert python[2] > 300
    assert native[4] < python[4] / 2  # most lines were shown together with others


@pytest.mark.parametrize("isa", ISAS)
def test_strings_and_what_they_point_to(isa, monkeypatch):
    pointer = ARGUMENTS[isa][1] if isa != "i386" else "ax"
    text = "+0(+4(%sp))" if isa == "i386" else f"+0(%{pointer})"
    lines = [(f"p:greet {{place}} name={text}:string first={text}:char s={text}:string", "greet")]
    lines.append((f"p:say {{place}} {text}:string +0({text}):string {text}:u8[4]", "say"))
    for case in ("args", "cxx"):
        same(isa, case, lines, monkeypatch)


@pytest.mark.parametrize("isa", ISAS)
def test_every_thread_has_its_name_and_number(isa, monkeypatch):
    python, _ = same(isa, "threads", [("p:add {place} $comm", "thread_add")], monkeypatch)
    assert len({line.split("[")[0] for line in python[1].splitlines()}) > 1
    same(isa, "processes", [("p:child {place}", "in_child")], monkeypatch)


@pytest.mark.parametrize(
    "text",
    [
        "n == 3",
        "n > 2 && n != 5",
        "!(n < 4) || n & 1",
        "n <= 1 && common_pid >= 100",
        'who == "zoo"',
        'who ~ "z*o" && n == 2',
        'who != "zoo" || n ~ "?"',
        'n == "4"',
        "neg > 4 || neg < 0",
        "letter == 0 && n == 1",
    ],
)
def test_filters_choose_the_same_events(text, monkeypatch):
    line = "p:fib {place} n=%di:u32 who=$comm neg=%di:s8 letter=%di:char"
    fields = frozenset({"n", "who", "neg", "letter", "common_pid"})
    wanted = parse_filter(text, fields)
    options = TraceOptions(wanted)
    assert has_native_form(parse("p:fib /x:0x10 %di", ISAS["x86_64"]), options, SIZE)
    same("x86_64", "recursion", [(line, "fib")], monkeypatch, wanted=wanted)


def test_processes_and_threads_are_chosen_alike(monkeypatch):
    line = [("p:fib {place} n=%di", "fib")]
    for options in ({"pid": 100}, {"pid": 101}, {"tid": 100}, {"tid": 7}):
        python, _ = same("x86_64", "recursion", line, monkeypatch, **options)
        assert bool(python[1]) is (100 in options.values())


def test_what_has_no_native_form_is_pythons():
    definition = parse("p:fib /x:0x10 n=%di", ISAS["x86_64"])
    for text in ("n == -1", 'n ~ "[ab]"', "n == 0x8000000000000000"):
        assert not has_native_form(definition, TraceOptions(parse_filter(text, frozenset({"n"}))), SIZE)
    assert not has_native_form(definition, TraceOptions(stacks=True), SIZE)
    assert not has_native_form(definition, TraceOptions(), 100)
