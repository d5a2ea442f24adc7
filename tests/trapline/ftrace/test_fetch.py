"""Fetch arguments: the forms, the errors with their columns, and how values are shown."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.isa import ISAS, X86_64
from emu.support.words import BadAddressError
from trapline.ftrace.definition import parse
from trapline.ftrace.errors import UprobeEventError
from trapline.ftrace.fetch import fetch
from trapline.ftrace.fetch_parser import parse as parse_argument

MEMORY = {0x1000: b"hello\0", 0x2000: (0x1000).to_bytes(8, "little"), 0x3000: bytes(range(1, 33)), 0x4000: b"\xff" * 16}


class Target:
    comm = "cmd"

    def register(self, name):
        return {"rax": 0xFFFF_FFFF_FFFF_FFFE, "rdi": 0x1000, "rsi": 0x2000, "rsp": 0x3000, "rbx": 0x9_0000}.get(name, 0)

    def load(self, address, size):
        for start, data in MEMORY.items():
            if start <= address and address + size <= start + len(data):
                return data[address - start : address - start + size]
        raise BadAddressError(address)

    def file_address(self, offset):
        return 0x3000 + offset


def shown(text, *, returns=False):
    return fetch(parse_argument(text, X86_64, 1, set(), returns=returns), Target(), X86_64)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%ax", "0xfffffffffffffffe"),
        ("%ax:s32", "-2"),
        ("%ax:u8", "254"),
        ("%ax:x16", "0xfffe"),
        ("%ax:char", "'þ'"),
        ("%ax:b4@2/32", "15"),
        ("$retval:s64", "-2"),
        ("$stack", "0x3000"),
        ("$stack1", "0x100f0e0d0c0b0a09"),
        ("$stack9999", "0x0"),
        ("$comm", '"cmd"'),
        ("\\42:u32", "42"),
        ("\\-1:s32", "-1"),
        ('\\"text"', '"text"'),
        ("+0(%di):string", '"hello"'),
        ("+0(+0(%si)):string", '"hello"'),
        ("+u0(%di):ustring", '"hello"'),
        ("+1(%di):char", "'e'"),
        ("@0x1000:u8", "104"),
        ("@+2:u8", "3"),
        ("+0(%sp):u8[4]", "{1,2,3,4}"),
        ("+0(%si):string[1]", '{"hello"}'),
        ("+0(%bx):string", "(fault)"),
        ("+0(%bx):u32", "0"),
        ("+8(+0(%bx)):string", "(fault)"),
        ("-0x10(%sp):x8", "0x0"),
    ],
)
def test_a_value_is_shown_as_linux_shows_it(text, expected):
    assert shown(text, returns="retval" in text) == expected


@pytest.mark.parametrize(
    ("text", "identifier", "column"),
    [
        ("%rax", "BAD_REG_NAME", 0),
        ("$retval", "RETVAL_ON_PROBE", 0),
        ("$nosuch", "BAD_VAR", 0),
        ("$arg1", "NOFENTRY_ARGS", 0),
        ("$stackx", "BAD_STACK_NUM", 0),
        ("@symbol", "SYM_ON_UPROBE", 0),
        ("@+x", "BAD_FILE_OFFS", 0),
        ("@0xzz", "BAD_MEM_ADDR", 0),
        ("\\x", "BAD_IMM", 0),
        ('\\"abc', "IMMSTR_NO_CLOSE", 0),
        ("+8", "DEREF_NEED_BRACE", 0),
        ("+8(%di", "DEREF_OPEN_BRACE", 2),
        ("+x(%di)", "BAD_DEREF_OFFS", 0),
        ("+0($comm)", "COMM_CANT_DEREF", 3),
        ("name", "NOSUP_BTFARG", 0),
        ("!", "BAD_FETCH_ARG", 0),
        ("=%di", "NO_ARG_NAME", 0),
        ("a=", "NO_ARG_BODY", 2),
        ("1a=%di", "BAD_ARG_NAME", 0),
        ("common_pid=%di", "USED_ARG_NAME", 0),
        (f"{'a' * 33}=%di", "ARG_NAME_TOO_LONG", 0),
        (f"+{'0' * 70}(%di)", "ARG_TOO_LONG", 0),
        ("%di:string", "BAD_STRING", 4),
        ("%di:u7", "BAD_TYPE", 4),
        ("$comm:u8", "NEED_STRING_TYPE", 6),
        ("%di:b9@0/8", "BAD_BITFIELD", 4),
        ("+0(%di):u8[", "ARRAY_NO_CLOSE", 10),
        ("+0(%di):u8[2]x", "BAD_ARRAY_SUFFIX", 13),
        ("+0(%di):u8[x]", "BAD_ARRAY_NUM", 11),
        ("+0(%di):u8[65]", "ARRAY_TOO_BIG", 11),
        ("+0(" * 15 + "%di" + ")" * 15, "TOO_MANY_OPS", 42),
    ],
)
def test_a_mistake_is_named_with_its_place(text, identifier, column):
    with pytest.raises(UprobeEventError) as caught:
        parse_argument(text, X86_64, 1, set(), returns=False)
    assert (caught.value.id, caught.value.column) == (identifier, column)


@pytest.mark.parametrize(
    ("line", "identifier"),
    [
        ("x:a /bin/x:0", "BAD_DEFINITION"),
        ("p", "BAD_DEFINITION"),
        ("p /bin/x:main", "BAD_UPROBE_OFFS"),
        ("p x:0", "BAD_UPROBE_OFFS"),
        ("p /bin/x:0%exit", "BAD_ADDR_SUFFIX"),
        ("p /bin/x:0(4", "REFCNT_OPEN_BRACE"),
        ("p /bin/x:0(4)5", "BAD_REFCNT_SUFFIX"),
        ("p /bin/x:0(x)", "BAD_REFCNT"),
        ("p:/e /bin/x:0", "NO_GROUP_NAME"),
        ("p:g!/e /bin/x:0", "BAD_GROUP_NAME"),
        ("p:e! /bin/x:0", "BAD_EVENT_NAME"),
        ("p: /bin/x:0", "NO_EVENT_NAME"),
        (f"p:{'e' * 64} /bin/x:0", "EVENT_TOO_LONG"),
        ("p:e /bin/x:0 a=%di a=%si", "USED_ARG_NAME"),
    ],
)
def test_a_line_that_linux_refuses_is_refused(line, identifier):
    with pytest.raises(UprobeEventError) as caught:
        parse(line, X86_64)
    assert caught.value.id == identifier


@pytest.mark.parametrize(
    ("line", "listed"),
    [
        ("p /bin/bash:0x4245c0", "p:uprobes/p_bash_0x4245c0 /bin/bash:0x00000000004245c0"),
        ("r:e /bin/bash:16 $retval", "r:uprobes/e /bin/bash:0x0000000000000010 arg1=$retval"),
        ("p:g/e /lib/libc.so.6:020%return", "r:g/e /lib/libc.so.6:0x0000000000000010"),
        ("p:g.e /a/b-c.d:1(0x20) x=+0(%di):string # no", "p:g/e /a/b-c.d:0x0000000000000001(0x20) x=+0(%di):string"),
    ],
)
def test_a_line_is_listed_as_uprobe_events_lists_it(line, listed):
    assert str(parse(line, X86_64)) == listed
    assert str(parse(listed, X86_64)) == listed


@given(st.text(max_size=60), st.sampled_from(list(ISAS.values())))
def test_any_line_is_read_or_refused(text, isa):
    for line in (text, f"p:e /bin/x:0x10 {text}"):
        with contextlib.suppress(UprobeEventError):
            parse(line, isa)


def test_the_error_log_points_at_the_place():
    with pytest.raises(UprobeEventError) as caught:
        parse("p:e /bin/x:0x10 %nosuch", X86_64)
    head, command, caret = caught.value.log_entry(1_234_567_000).splitlines()
    assert head == "[    1.234567] trace_uprobe: error: there is no such register"
    assert command == "  Command: p:e /bin/x:0x10 %nosuch"
    assert caret.index("^") == command.index("%nosuch")
