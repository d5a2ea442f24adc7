"""FBT on compiled C: with every probe enabled a program computes the same results."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections import Counter

import pytest

from emu.elf.image import Image
from emu.guest.function import FunctionGuest
from emu.guest.modules import Module
from emu.isa import ISAS
from providers.fbt import FBT, PORTS, riscv64, walk
from tests.providers.fbt.fakes import FakeFramework

SOURCE = """
typedef unsigned long ulong;
static ulong state;

__attribute__((noinline)) ulong next(ulong n) { state = state * 6364136223846793005ULL + n; return state >> 7; }
__attribute__((noinline)) ulong twice(ulong n) { return next(next(n) + 1); }
__attribute__((noinline)) ulong tail(ulong n) { state ^= n; return n & 1 ? twice(n) : next(n); }

__attribute__((noinline)) ulong fib(ulong n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__attribute__((noinline)) ulong large(ulong n)
{
    volatile ulong frame[600];
    for (ulong i = 0; i < 600; i++) frame[i] = i * n;
    return frame[n % 600] + next(n);
}

__attribute__((noinline)) ulong choose(ulong n)
{
    switch (n % 7) {
    case 0: return fib(n % 5);
    case 1: return twice(n);
    case 2: return tail(n);
    case 3: return large(n) + 1;
    case 4: return next(n) * 3;
    case 5: return tail(n) ^ twice(n);
    }
    return 42;
}

ulong everything(ulong n)
{
    ulong sum = 0;
    state = 1;
    for (ulong i = 0; i < n; i++) sum = sum * 31 + choose(i);
    return sum;
}
"""
FLAGS = ("-O2", "-fno-omit-frame-pointer", "-ffreestanding", "-nostdlib", "-static", "-no-pie", "-fno-stack-protector",
         "-fno-inline", "-Wl,-Ttext=0x10000,-e,everything", "-Wl,--build-id=none")  # fmt: skip
EXTRA = {"aarch64": ("-mbranch-protection=standard",), "i386": ("-m32", "-fno-pic", "-fno-schedule-insns2")}
# Where it is not <isa>-linux-gnu-gcc.
COMPILERS = {"i386": "gcc"}


@pytest.fixture(scope="module", params=list(PORTS))
def program(request, tmp_path_factory):
    isa = request.param
    compiler = shutil.which(COMPILERS.get(isa, f"{isa}-linux-gnu-gcc"))
    if compiler is None:
        pytest.skip(f"no compiler for {isa} on this machine")
    path = tmp_path_factory.mktemp("compiled") / "program"
    source = path.with_suffix(".c")
    source.write_text(SOURCE)
    subprocess.run([compiler, *FLAGS, *EXTRA.get(isa, ()), "-o", path, source], check=True)
    return Image(path, isa=ISAS[isa])


def _sound(port, function, result):
    return bool(result.sites) and riscv64.HALF_INSTRUCTION not in (rule for _, rule in port.remarks(function, result))


class Traced:
    """The program in a guest of its own, with FBT over it."""

    def __init__(self, image):
        self.guest = FunctionGuest(image.isa, image)
        self.framework = FakeFramework()
        self.fbt = FBT(self.framework, self.guest.patcher, self.guest.traps, image.isa)
        module = Module("kernel", image.symbols, self.guest.patcher.original)
        self.fbt.provide_module(module)
        port, functions, read = PORTS[image.isa.name], module.functions(), module.read

        self._sound = {each.name for each, code, result in walk(port, functions, read) if _sound(port, code, result)}

    def probes(self):
        """The probes that can be enabled without harm: FreeBSD's RISC-V scanner patches halves of instructions."""
        return [(number, arg) for number, (_, _, arg) in self.framework.probes.items() if arg.function in self._sound]

    def run(self, function, argument):
        before = self.guest.engine.instructions
        return self.guest.call(argument, function=function), self.guest.engine.instructions - before


def test_with_every_probe_enabled_the_program_computes_the_same_in_as_many_instructions(program):
    expected = Traced(program).run("everything", 60)
    traced = Traced(program)
    for probe in traced.probes():
        traced.fbt.enable(*probe)
    assert traced.run("everything", 60) == expected
    assert len(traced.framework.fired) > 100


def test_entries_and_returns_of_a_recursive_function_pair_up(program):
    traced = Traced(program)
    for probe in traced.probes():
        traced.fbt.enable(*probe)
    assert traced.run("fib", 10)[0] == 55
    fired = Counter(name for name, *_ in traced.framework.fired)
    assert fired["fbt:kernel:fib:entry"] >= 1
    results = [arguments[2] for arguments in traced.framework.fired if arguments[0] == "fbt:kernel:fib:return"]
    assert results[-1] == 55


def test_after_disabling_the_code_is_the_compilers_again(program):
    traced = Traced(program)
    for probe in traced.probes():
        traced.fbt.enable(*probe)
    traced.run("everything", 5)
    fired = len(traced.framework.fired)
    for probe in reversed(traced.probes()):
        traced.fbt.disable(*probe)
    for segment in program.segments:
        if segment.data:
            assert traced.guest.engine.read(segment.vaddr, len(segment.data)) == segment.data or segment.flags & 2
    traced.run("everything", 5)
    assert len(traced.framework.fired) == fired


def test_the_sites_are_instructions_that_objdump_knows(program):
    """Every site is where objdump has an instruction, a push, a store or a return."""
    objdump = shutil.which(f"{program.isa.name}-linux-gnu-objdump")
    if objdump is None:
        pytest.skip("no objdump for it on this machine")
    output = subprocess.run([objdump, "-d", program.path], capture_output=True, text=True, check=True).stdout
    rows = (re.match(r"\s*([0-9a-f]+):\t[0-9a-f ]+\t(\S+)", line) for line in output.splitlines())
    mnemonics = {int(row[1], 16): row[2] for row in rows if row}
    kinds = {
        "entry": {"push", "stp", "sub", "nop", "sd"},
        "return": {"ret", "b"},
    }
    found = 0
    port = PORTS[program.isa.name]
    for _symbol, function, result in walk(port, program.functions, program.read):
        if _sound(port, function, result):
            for site in result.sites:
                assert mnemonics[site.address] in kinds[site.probe]
                found += 1
    assert found >= 10
