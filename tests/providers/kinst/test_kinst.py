"""kinst: with probes at any instruction, the kernel computes the same results in the same time."""

from __future__ import annotations

from collections import Counter
from functools import cache
from itertools import product

import pytest

from emu.displaced.decision import ALWAYS, Code, Displaced, OutOfLine, Refused
from emu.guest.kernel.trap_path import TrapPath
from emu.isa import ISAS
from emu.isa.riscv64.plans import j_immediate
from providers.kinst import PORTS
from trapline.consumer.tracer import Tracer
from trapline.framework.base.program import ProbeDescription
from trapline.framework.native.upcall_code import Upcall
from trapline.framework.native.upcalls import Upcalls
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

COMMAND = "cat /etc/motd | wc"
# Each run has every seventh function: together, and over the trap paths, that is a third of the kernel.
PART = 7
BOTH = [*product(PORTS, TrapPath)]


class Run:
    """A run of one command: what it printed, how long it took, and what was traced."""

    def __init__(self, isa, path=TrapPath.HOST, program=""):
        screen = bytearray()
        self.machine = boot(
            kernel_guest(KernelOptions(isa=ISAS[isa], trap_path=path, command=COMMAND, console=screen.extend))
        )
        guest = self.machine.guest
        text = guest.image.segments[0]
        pristine = guest.engine.read(text.vaddr, len(text.data))
        with Tracer(guest, self.machine.dtrace, {"quiet": None, "zdefs": None}) as tracer:
            if program:
                self.matched = tracer.enable(program)
                assert guest.engine.read(text.vaddr, len(text.data)) != pristine
                tracer.run()
                assert not tracer.faults
            else:
                guest.run(None)
            self.text = tracer.text
            self.counts = {element.keys: element.value for element in tracer.aggregations()}
        assert guest.engine.read(text.vaddr, len(text.data)) == pristine
        assert not any(point.installed for point in guest.patcher.listing())
        self.screen, self.now = bytes(screen), guest.now()


@cache
def plain(isa):
    return Run(isa)


@cache
def callers(isa):
    """Return the (function, caller) that FBT sees."""
    return set(Run(isa, program="fbt:::entry { @[probefunc, caller] = count(); }").counts)


def follows_call(isa, image, function, caller):
    """Return whether the code before an address calls a function directly."""
    target, caller = image.symbol(function).value, caller & (1 << 64) - 1
    word = Displaced(int.from_bytes(image.read(caller - 4, 4), "little"), 0)
    if isa == "x86_64":
        return caller + word.signed(31, 0) == target
    if isa == "aarch64":
        return word.bits(31, 26) == 0b100101 and caller - 4 + 4 * word.signed(25, 0) == target
    return word.bits(11, 0) == 0x0EF and caller - 4 + j_immediate(word) == target


def functions(isa):
    machine = kernel_guest(KernelOptions(isa=ISAS[isa]))
    return list(dict.fromkeys(symbol.name for symbol in machine.image.symbols if symbol.is_function and symbol.size))


@pytest.mark.exhaustive
@pytest.mark.parametrize(("isa", "path"), BOTH)
def test_a_kernel_probed_at_each_instruction_does_what_it_does_unprobed(isa, path):
    chosen = functions(isa)[[*TrapPath].index(path) * 3 :: PART]
    program = ", ".join(f"kinst::{function}:" for function in chosen) + " { @[probefunc, caller] = count(); }"
    run = Run(isa, path, program)
    assert run.matched > 1000
    assert run.screen == plain(isa).screen
    assert run.now == plain(isa).now
    seen = {function for function, _ in callers(isa)}
    # Whichever instruction it is, its function was called by who FBT says it was; but FBT does not see the ways through
    # a function that open no frame.
    strangers = {key for key in run.counts if key[0] in seen} - callers(isa)
    image = run.machine.guest.image
    assert not [key for key in strangers if not follows_call(isa, image, *key)]
    assert sum(run.counts.values()) > 3000


@pytest.mark.parametrize(("isa", "path"), BOTH)
def test_the_first_instruction_has_the_arguments_in_its_registers(isa, path):
    fbt = Run(isa, path, 'fbt::sys_read:entry { printf("%x\\n", arg1); }')
    register = {"x86_64": 28, "aarch64": 1, "riscv64": 11}[isa]
    kinst = Run(isa, path, f'kinst::sys_read:0 {{ printf("%x\\n", regs[{register}]); }}')
    assert fbt.text.strip()
    assert [line for line in kinst.text.splitlines() if line] == [line for line in fbt.text.splitlines() if line]


@pytest.mark.parametrize(("isa", "path"), BOTH)
def test_both_trap_paths_show_the_same_registers(isa, path):
    registers = ", ".join(f"(uint64_t)regs[{number}]" for number in range(4, 12))
    program = f'kinst::uma_zalloc: {{ printf("%s {"%x " * 8}\\n", probename, {registers}); }}'
    assert Run(isa, path, program).text == reference(isa, program)


@cache
def reference(isa, program):
    text = Run(isa, TrapPath.HOST, program).text
    assert len(text) > 10_000
    return text


@cache
def machine(isa):
    return boot(kernel_guest(KernelOptions(isa=ISAS[isa], command=COMMAND)))


def matched(isa, text):
    """Return the functions and offsets that a description matches."""
    provider, module, function, name = text.split(":")
    return [
        (probe.module, probe.function, int(probe.name))
        for probe in machine(isa).dtrace.match(ProbeDescription(provider, module, function, name))
    ]


@pytest.mark.parametrize("isa", PORTS)
def test_a_name_without_an_offset_is_every_instruction(isa):
    every = matched(isa, "kinst::malloc:")
    symbol = machine(isa).guest.image.symbol("malloc")
    code = machine(isa).guest.image.read(symbol.value, symbol.size)
    assert [offset for _, _, offset in every] == list(PORTS[isa].boundaries(code))
    assert {(module, function) for module, function, _ in every} == {("kernel", "malloc")}
    assert matched(isa, f"kinst:kernel:malloc:{every[1][2]}") == [every[1]]


@pytest.mark.parametrize("isa", PORTS)
@pytest.mark.parametrize(
    "name", ["cpu_switch:", "dtrace_invop:", "no_such_function:", "malloc:100000", "malloc:x", "malloc:1", "memcp*:"]
)
def test_what_is_not_a_site_matches_nothing(isa, name):
    if name == "malloc:1" and isa == "x86_64":
        name = "malloc:2"  # the first instruction is one byte long
    assert matched(isa, f"kinst::{name}") == []


REFUSED = [
    ("x86_64", "9d", "interrupts"),  # popf
    ("x86_64", "fb", "interrupts"),  # sti
    ("x86_64", "e300", "127 bytes"),  # jrcxz
    ("x86_64", "e200", "127 bytes"),  # loop
    ("x86_64", "66ffd0", "operand-size"),  # call ax
    ("x86_64", "66e900000000", "operand-size"),  # jmpw
    ("x86_64", "cc", "breakpoint"),
    ("aarch64", "007c5fc8", "exclusively"),  # ldxr x0, [x0]
    ("aarch64", "a08120d4", "breakpoint"),  # brk #0x40d
    ("riscv64", "2fb50210", "reservation"),  # lr.d a0, (t0)
    ("riscv64", "73002010", "privileged"),  # sret
    ("riscv64", "0290", "breakpoint"),  # c.ebreak
]


@pytest.mark.parametrize(("isa", "code", "why"), REFUSED)
def test_an_instruction_is_refused_with_its_reason(isa, code, why):
    decision = PORTS[isa].treat(Code(bytes.fromhex(code), 0xFFFF_FFFF_8020_0000))
    assert isinstance(decision, Refused)
    assert why in decision.rule.why
    assert decision.rule.source


def test_a_short_jump_becomes_a_long_one_in_its_trampoline():
    port, at, trampoline = PORTS["x86_64"], 0xFFFF_FFFF_8020_0000, 0xFFFF_FFFF_8030_0000
    for code, opcode, leaves in (("7510", "0f85", 5), ("eb10", "e9", ALWAYS)):
        copied = port.treat(Code(bytes.fromhex(code), at))
        assert copied.leaves == leaves
        text = port.trampoline(copied, trampoline, at)
        assert text.startswith(bytes.fromhex(opcode))
        assert (
            trampoline + copied.place + 4 + int.from_bytes(text[copied.place : copied.place + 4], "little", signed=True)
            == at + 2 + 0x10
        )
        assert text[-14:] == bytes.fromhex("ff2500000000") + (at + 2).to_bytes(8, "little")


@pytest.mark.parametrize("code", ["0f2005", "0f2205", "0f2105", "0f2305", "440f2005"])
def test_a_move_of_a_control_register_has_no_distance_to_be_filled_in(code):
    """Its rm is a register whatever mod is: what looks like an operand relative to rip is none."""
    port, at = PORTS["x86_64"], 0xFFFF_FFFF_8020_0000
    copied = port.treat(Code(bytes.fromhex(code) + b"\x90" * 12, at))
    assert isinstance(copied, OutOfLine)
    assert (copied.place, copied.code) == (-1, bytes.fromhex(code))
    jump = bytes.fromhex("ff2500000000") + (at + len(copied.code)).to_bytes(8, "little")
    assert port.trampoline(copied, at + 0x1000, at) == copied.code + jump


@pytest.mark.parametrize("isa", PORTS)
def test_machine_code_serves_hits_as_python_does(isa, monkeypatch):
    chosen = ", ".join(f"kinst::{function}:" for function in functions(isa)[5 :: 3 * PART])
    program = f"{chosen} {{ @[probefunc, probename, caller, arg0, arg5, arg9] = count(); }}"
    runs, asked, plain = {}, Counter(), Upcalls._called
    monkeypatch.setattr(
        Upcalls, "_called", lambda self, which, *rest: asked.update([which]) or plain(self, which, *rest)
    )
    for engine in ("reference", "native"):
        monkeypatch.setenv("TRAPLINE_ENGINE", engine)
        runs[engine] = Run(isa, program=program)
    assert runs["native"].counts == runs["reference"].counts
    assert runs["native"].screen == runs["reference"].screen
    assert runs["native"].now == runs["reference"].now
    assert len(runs["native"].counts) > 100
    # Two are asked for at each hit: Python reads them at first hits, and after the table was emptied.
    assert asked[Upcall.SCALAR] < sum(runs["native"].counts.values())
