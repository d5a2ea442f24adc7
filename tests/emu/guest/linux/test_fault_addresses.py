"""The address that a signal tells of a fault, and the exceptions where no page can be."""

import pytest

from tests.fuzz.judge.case import CODE, Case, Page
from tests.fuzz.judge.judges import by_guest, by_judge, command

SIGILL, SIGBUS, SIGFPE, SIGSEGV = 4, 7, 8, 11
FPE_INTDIV = 1
MAPERR, KERNEL = 1, 0x80
FAR = 0x1234_5678_9ABC_DEF0
# By ISA: code, general registers by number, then the signal, its code, and its address.
CASES = {
    "x86_64": {
        "no canonical address": ("8b00", {0: FAR}, (SIGSEGV, KERNEL, 0)),
        "the last canonical byte": ("8a00", {0: 0x7FFF_FFFF_FFFF}, (SIGSEGV, MAPERR, 0x7FFF_FFFF_FFFF)),
        "bytes behind it": ("8b00", {0: 0x7FFF_FFFF_FFFE}, (SIGSEGV, KERNEL, 0)),
        "by rbp": ("8b4500", {5: FAR}, (SIGBUS, KERNEL, 0)),
        "by rbp in gs": ("658b4500", {5: FAR}, (SIGSEGV, KERNEL, 0)),
        "by rbp, with a prefix that is ignored": ("2e8b4500", {5: FAR}, (SIGBUS, KERNEL, 0)),
        "push": ("50", {4: FAR}, (SIGBUS, KERNEL, 0)),
        "leave": ("c9", {5: 0x12340}, (SIGSEGV, MAPERR, 0x12340)),
        "addresses of 32 bits": ("678b4c7304", {3: 0xFFFF_0000_0001_2340, 6: 0x10}, (SIGSEGV, MAPERR, 0x12364)),
        "a far bit": ("480fa308", {0: 0x12340, 1: 0x12345}, (SIGSEGV, MAPERR, 0x12340 + 0x2468)),
        "a bit before": ("0fa308", {0: 0x12340, 1: 0xFFFF_FF00}, (SIGSEGV, MAPERR, 0x12340 - 0x20)),
        "xlat": ("d7", {0: 0xFF21, 3: 0x12300}, (SIGSEGV, MAPERR, 0x12321)),
    },
    "i386": {
        "addresses of 16 bits": ("678a00", {3: 0xFFFF_F000, 6: 0x234}, (SIGSEGV, MAPERR, 0xF234)),
        "beyond the segment": ("8b00", {0: 0xFFFF_FFFE}, (SIGSEGV, KERNEL, 0)),
        "beyond it, by ebp": ("8b4500", {5: 0xFFFF_FFFE}, (SIGBUS, KERNEL, 0)),
        "leave": ("c9", {5: 0x12344}, (SIGSEGV, MAPERR, 0x12344)),
        "a far bit": ("0fa308", {0: 0x12340, 1: 0x12345}, (SIGSEGV, MAPERR, 0x12340 + 0x2468)),
    },
    "aarch64": {
        "a tag": ("200040f9", {1: 0x5A00_0000_0001_2340}, (SIGSEGV, MAPERR, 0x12340)),
        "a kernel's address": ("200040f9", {1: 0xFFFF_FFFF_FFFF_2340}, (SIGSEGV, MAPERR, 0xFFFF_FFFF_FFFF_2340)),
    },
}
COUNT = {"x86_64": 16, "i386": 8, "aarch64": 32}


def cases(isa):
    for code, registers, _ in CASES[isa].values():
        general = [0x2000_0800] * COUNT[isa]
        for number, value in registers.items():
            general[number] = value
        yield Case(bytes.fromhex(code), (), tuple(general), (), control=0x1F80 | 0x37F << 32)


@pytest.mark.parametrize("isa", CASES)
def test_a_fault_is_told_as_a_cpu_tells_it(isa):
    expected = {name: (*fault, CODE) for name, (*_, fault) in CASES[isa].items()}
    runners = [by_guest, *([by_judge] if command(isa) else [])]
    for run in runners:
        found = [(one.signal, one.code, one.address, one.pc) for one in run(isa, list(cases(isa)))]
        assert dict(zip(expected, found, strict=True)) == expected, run.__name__


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_rdseed_which_cpuid_does_not_promise_is_undefined(isa):
    (ended,) = by_guest(isa, [Case(bytes.fromhex("0fc7f8"), (), (0,) * COUNT[isa], (), control=0x1F80 | 0x37F << 32)])
    assert (ended.signal, ended.pc) == (SIGILL, CODE)


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_the_last_instruction_before_a_page_that_cannot_be_executed_has_its_own_fault(isa):
    # div %eax, of 0; nop
    general = (0,) * COUNT[isa]
    case = Case(
        bytes.fromhex("f7f090"), (), general, (), control=0x1F80 | 0x37F << 32, offset=0xFFE, page=Page.NO_EXECUTION
    )
    for run in (by_guest, *([by_judge] if command(isa) else [])):
        (ended,) = run(isa, [case])
        assert (ended.signal, ended.code, ended.pc) == (SIGFPE, FPE_INTDIV, CODE + 0xFFE), run.__name__


def test_a_jump_to_an_address_that_is_not_aligned_is_a_bus_error():
    # br x0
    case = Case(bytes.fromhex("00001fd6"), (), (CODE + 0x22, *[0x2000_0800] * 31), ())
    for run in (by_guest, *([by_judge] if command("aarch64") else [])):
        (ended,) = run("aarch64", [case])
        assert (ended.signal, ended.code, ended.address, ended.pc) == (SIGBUS, 1, CODE + 0x22, CODE + 0x22)
