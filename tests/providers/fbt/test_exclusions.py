"""FBT's exclusions (FreeBSD sys/cddl/dev/fbt/fbt.c, fbt_excluded and fbt_provide_module)."""

from __future__ import annotations

import pytest

from emu.elf.symbols import Binding, SymbolType
from emu.guest.modules import Module
from emu.support.words import BadAddressError
from providers.fbt import PORTS, walk
from providers.fbt.exclusions import EXCLUSIONS, excluded, module_name, module_refusal
from tests.providers.fbt.assembly import ADDRESS, assemble
from tests.providers.fbt.fakes import symbol
from tests.support.some import some

BODIES = {
    "x86_64": """
        55        push rbp
        c3        ret
    """,
    "aarch64": """
        fd7bbfa9  stp x29, x30, [sp, #-0x10]!
        c0035fd6  ret
    """,
    "riscv64": """
        06ec      c.sdsp ra, 0x18(sp)
        8280      c.jr ra
    """,
    "i386": """
        55        push ebp
        89e5      mov ebp, esp
        5d        pop ebp
        c3        ret
    """,
}


def outcome(isa, *names):
    """Give functions of these names the same innocent code; return {name: refusing rule or None}."""
    code = assemble(isa, BODIES[isa])
    symbols = [symbol(name, ADDRESS, len(code)) for name in names]
    found = walk(PORTS[isa], symbols, lambda _address, size: code[:size])
    return {each.name: result.refusal and result.refusal.rule.name for each, _function, result in found}


@pytest.mark.parametrize("isa", list(PORTS))
@pytest.mark.parametrize(("name", "rule"), [
    ("dtrace_probe", "dtrace_*"),
    ("dtrace_", "dtrace_*"),
    ("dtrace_safe_defer_signal", None),
    ("dtrace", None),
    ("xdtrace_probe", None),
    ("db_trap", "db_*"),
    ("kdb_enter", "kdb_*"),
    ("kdb", None),
    ("owner_mtx", "lock owner"),
    ("owner_rm", "lock owner"),
    ("owner_rw", "lock owner"),
    ("owner_sx", "lock owner"),
    ("owner_mtx2", None),
    ("fbt_invop", "fbt_*"),
    ("__malloc", None),
    ("_init", None),
    ("sys_read", None),
])  # fmt: skip
def test_a_name_is_excluded_on_every_isa_alike(isa, name, rule):
    assert outcome(isa, name) == {name: rule}


@pytest.mark.parametrize(("name", "rule", "isas"), [
    ("trap_check", "trap_check", {"x86_64", "i386"}),
    ("unwind_frame", "unwind_frame", {"aarch64", "riscv64"}),
    ("handle_el1h_sync", "exception handler", {"aarch64"}),
    ("do_el1h_sync", "exception handler", {"aarch64"}),
    ("cpu_exception_handler", "exception handler", {"riscv64"}),
    ("cpu_exception_handler_user", "exception handler", {"riscv64"}),
    ("cpu_exception_handler_supervisor", "exception handler", {"riscv64"}),
    ("do_trap_supervisor", "exception handler", {"riscv64"}),
])  # fmt: skip
def test_some_names_are_excluded_on_one_isa(name, rule, isas):
    assert {isa for isa in PORTS if outcome(isa, name) == {name: rule}} == isas
    assert all(outcome(isa, name) == {name: None} for isa in set(PORTS) - isas)


def test_an_excluded_exception_handler_ends_the_walk_on_aarch64():
    assert outcome("aarch64", "first", "do_el1h_sync", "second", "dtrace_probe") == {
        "first": None,
        "do_el1h_sync": "exception handler",
        "second": "walk ended",
        "dtrace_probe": "walk ended",
    }


def test_no_other_exclusion_ends_the_walk():
    for isa in some(PORTS):
        names = ("dtrace_probe", "db_trap", "owner_mtx", "trap_check", "unwind_frame", "do_trap_supervisor")
        assert outcome(isa, *names, "last")["last"] is None


def test_an_unwanted_function_is_left_out_but_still_ends_the_walk():
    code = assemble("aarch64", BODIES["aarch64"])
    symbols = [symbol(name, ADDRESS, len(code)) for name in ("do_el1h_sync", "unwanted", "wanted")]
    found = list(walk(PORTS["aarch64"], symbols, lambda *_: code, lambda name: name == "wanted"))
    assert [(each.name, result.refusal.rule.name) for each, _function, result in found] == [("wanted", "walk ended")]


def test_a_symbol_without_code_is_refused_and_the_walk_continues():
    def read(address, size):
        if address == ADDRESS:
            raise BadAddressError(address)
        return b"\x55\xc3"

    symbols = [symbol("nowhere", ADDRESS, 2), symbol("f", ADDRESS + 16, 2)]
    rules = [result.refusal and result.refusal.rule.name for _, _, result in walk(PORTS["x86_64"], symbols, read)]
    assert rules == ["no code", None]


def test_every_exclusion_says_why_and_where_it_comes_from():
    for exclusion in some((*EXCLUSIONS, *(each for port in PORTS.values() for each in port.exclusions))):
        assert exclusion.rule.why
        assert exclusion.rule.source.startswith("FreeBSD sys/")


def test_what_is_not_excluded_has_no_exclusion():
    assert excluded("sys_read", EXCLUSIONS) is None


def module(name, *dependencies, symbols=()):
    return Module(name, tuple(symbols), lambda *_: b"", dependencies)


@pytest.mark.parametrize(("file_name", "name"), [
    ("kernel", "kernel"), ("zfs.ko", "zfs"), ("x.ko", "x"), (".ko", ".ko"), ("a.ko.debug", "a.ko.debug"),
])  # fmt: skip
def test_a_module_is_named_after_its_file_without_ko(file_name, name):
    assert module_name(file_name) == name


@pytest.mark.parametrize(("loaded", "rule"), [
    (module("dtrace.ko"), "module dtrace"),
    (module("dtrace"), "module dtrace"),
    (module("sdt.ko", "kernel", "dtrace.ko"), "depends on dtrace"),
    (module("x.ko", "dtraceall.ko"), "depends on dtrace"),
    (module("x.ko", "opensolaris.ko"), None),
    (module("dtraceall.ko"), None),
    (module("cyclic.ko"), None),
    (module("kernel"), None),
])  # fmt: skip
def test_dtrace_and_whatever_needs_it_is_left_alone(loaded, rule):
    refusal = module_refusal(loaded)
    assert (refusal and refusal.name) == rule


def test_functions_of_a_module_are_functions_and_ifuncs_that_have_an_address():
    symbols = [
        symbol("function", 1, 0),
        symbol("ifunc", 2, 0, SymbolType.GNU_IFUNC),
        symbol("weak", 3, 0, binding=Binding.WEAK),
        symbol("local", 4, 0, binding=Binding.LOCAL),
        symbol("undefined", 0, 0),
        symbol("label", 5, 0, SymbolType.NOTYPE),
        symbol("object", 6, 0, SymbolType.OBJECT),
    ]
    names = [each.name for each in module("x.ko", symbols=symbols).functions()]
    assert names == ["function", "ifunc", "weak", "local"]
