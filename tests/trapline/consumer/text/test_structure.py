"""print() by type, JSON lines, aggregations in a notebook, and the calls of libdtrace."""

import json
import re
import struct

import pytest

from emu.isa import ISAS
from tests.support.command import run_trapline
from trapline.consumer.elements import Aggregations, Element
from trapline.consumer.text.structure import show
from trapline.d.check.scopes import Globals
from trapline.d.compiler import type_of_text
from trapline.libdtrace import Work, dtrace_open
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest


def shown(text, data, symbol=lambda _address: None, declarations=""):
    names = Globals()
    if declarations:
        from tests.trapline.d.support import compile_text

        compile_text(declarations, names=names)
    return show(type_of_text(text, names), data, symbol)


@pytest.mark.parametrize(
    ("type_", "data", "text"),
    [
        ("int", struct.pack("<i", 0), "int 0\n"),
        ("int", struct.pack("<i", -1), "int 0xffffffff\n"),
        ("uint64_t", struct.pack("<Q", 1 << 63), "uint64_t 0x8000000000000000\n"),
        ("char", b"a", "char 'a'\n"),
        ("char", b"\0", "char '\\0'\n"),
        ("char", b"\x07", "char '\\007'\n"),
        ("double", struct.pack("<d", 1.5), "double +1.5000000e+00\n"),
        ("char *", struct.pack("<Q", 0x10), "char * 0x10\n"),
    ],
)
def test_a_scalar_is_shown_after_its_type(type_, data, text):
    assert shown(type_, data) == text


def test_a_struct_is_shown_member_by_member():
    declarations = """
    enum colour { RED = 1, GREEN };
    struct inner { short a; char name[8]; };
    struct s { int id; struct inner in; struct inner *p; int v[3]; unsigned low:3; unsigned high:5; enum colour c; };
    """
    data = struct.pack("<ih8s2x", 7, 2, b"lion") + struct.pack(
        "<Q3iBB2xi", 0x1000, 1, 0, 3, 5, 9, 2
    )  # a byte for each bit-field
    assert shown("struct s", data, lambda address: "kernel`x" if address == 0x1000 else None, declarations) == (
        "struct s {\n"
        "    int id = 0x7\n"
        "    struct inner in = {\n"
        "        short a = 0x2\n"
        '        char [8] name = [ "lion" ]\n'
        "    }\n"
        "    struct inner *p = 0x1000\n"
        "    int [3] v = [ 0x1, 0, 0x3 ]\n"
        "    unsigned int low :3 = 0x5\n"
        "    unsigned int high :5 = 0x9\n"
        "    enum colour c = GREEN\n"
        "}"
    )


def test_structs_without_tags_functions_and_arrays_of_structs_are_shown_as_ctf_names_them():
    declarations = """
    struct s { struct { int b; } c; int (*g)(int, char); struct { char n[4]; } v[2]; int m[2][2]; };
    """
    data = struct.pack("<i4xQ4s4s4i", 1, 0, b"ab", b"\1\2\3\4", 1, 2, 3, 4)
    assert shown("struct s", data, declarations=declarations) == (
        "struct s {\n"
        "    struct c = {\n"
        "        int b = 0x1\n"
        "    }\n"
        "    int (*)() g = 0\n"
        "    struct [2] v = [ \n"
        "        struct  {\n"
        '            char [4] n = [ "ab" ]\n'
        "        }, \n"
        "        struct  {\n"
        "            char [4] n = [ '\\001', '\\002', '\\003', '\\004' ]\n"
        "        }\n"
        "    ]\n"
        "    int [2][2] m = [ [ 0x1, 0x2 ], [ 0x3, 0x4 ] ]\n"
        "}"
    )


@pytest.mark.parametrize("isa", ISAS)
def test_a_struct_of_the_kernel_is_printed_by_its_members(isa):
    run = run_trapline(["dtrace", "--isa", isa, "-qn", "BEGIN { print(`proc0); exit(0) }"])
    assert run.stdout.startswith("struct proc {\n    pid_t p_pid = 0\n")
    assert re.search(r"^    struct thread \*p_threads = 0x[0-9a-f]+$", run.stdout, re.MULTILINE)
    assert '    char [20] p_comm = [ "kernel" ]\n' in run.stdout


@pytest.mark.parametrize("isa", ISAS)
def test_with_format_json_every_line_is_json(isa):
    program = """fbt::sys_read:entry /execname == "sh" && n++ < 2/ {
        trace(execname); printf("%d", pid); @[execname] = count();
        @q = quantize(arg1 != 0); stack(1); }"""
    run = run_trapline(["dtrace", "--isa", isa, "-q", "-x", "format=json", "-n", program])
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    records = [line for line in lines if line["type"] == "record"]
    assert [(one["function"], one["values"][0], len(one["values"])) for one in records] == [("sys_read", "sh", 3)] * 2
    assert records[0]["values"][2][0]["name"].startswith("kernel`")
    counted, distribution = [line for line in lines if line["type"] == "aggregation"]
    assert (counted["function"], counted["keys"], counted["value"]) == ("count", ["sh"], 2)
    assert (distribution["name"], distribution["value"]) == ("@q", [[1, 2]])


def test_a_listing_can_be_json():
    run = run_trapline(["dtrace", "-x", "format=json", "-lv", "-n", "fbt::sys_read:entry"])
    (probe,) = map(json.loads, run.stdout.splitlines())
    assert (probe["provider"], probe["module"], probe["name"]) == ("fbt", "kernel", "entry")
    assert probe["args"] == ["struct thread *", "struct read_args *"]


def test_a_notebook_shows_aggregations_as_tables_with_bars():
    found = Aggregations(
        [Element("a", ("<sh>", 3), 10), Element("a", ("init", 4), 5), Element("q", (), {0: 1, 8: 2})],
        {"a": "count", "q": "quantize"},
    )
    html = found._repr_html_()
    assert html.count("<table>") == 3
    assert "@a count" in html
    assert "&lt;sh&gt;" in html
    assert "width:200px" in html
    assert "width:100px" in html


def test_libdtraces_calls_trace_a_guest():
    machine = boot(kernel_guest(KernelOptions()))
    with dtrace_open(
        machine.guest, machine.dtrace, foreign=machine.names, libraries=("common", "kernel", "x86_64")
    ) as handle:
        handle.setopt("bufsize", "1m")
        info = handle.program_exec(handle.strcompile("fbt::sys_read: { @[probename, curpsinfo->pr_fname] = count(); }"))
        assert (info.matches, info.recgens) == (2, 1)
        handle.go()
        while handle.work() is not Work.DONE:
            handle.sleep()
        seen = []
        handle.aggregate_walk(seen.append)
        counts = {element.keys: element.value for element in seen}
        assert counts["entry", "sh"] == counts["return", "sh"] > 0
        assert "entry" in handle.aggregate_print()
        assert handle.status().errors == 0
        assert handle.getopt("bufsize") == 1 << 20


def test_json_carries_out_what_acts_on_the_consumer():
    program = "BEGIN { @a = count(); @b = sum(2); clear(@b); trunc(@a); trace(1); exit(3); }"
    run = run_trapline(["dtrace", "-q", "-x", "format=json", "-n", program])
    assert run.returncode == 3
    found = [json.loads(line) for line in run.stdout.splitlines()]
    assert [(one["name"], one.get("value")) for one in found if one["type"] == "aggregation"] == [("@b", 0)]
