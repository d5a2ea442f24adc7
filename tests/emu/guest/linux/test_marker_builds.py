"""Markers of new builds: each argument is the value that the program prints, by every compiler that is installed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.emu.guest.linux.support import start
from trapline.consumer.tracer import Tracer

HEADERS = Path(__file__).parents[4] / "testbins" / "linux"
GCC = {
    "x86_64": "x86_64-linux-gnu-g++",
    "i386": "i686-linux-gnu-g++",
    "aarch64": "aarch64-linux-gnu-g++",
    "riscv64": "riscv64-linux-gnu-g++",
}
BUILDS = [
    *((isa, compiler, level) for isa, compiler in GCC.items() for level in ("-O0", "-O2", "-Os")),
    *(("x86_64", "clang++", level) for level in ("-O0", "-O2")),
]
SOURCE = r"""
#include <cstdio>
#include "sdt.h"
thread_local int counter = 5;
struct Values { signed char c; short h; long long l; int items[4]; };
thread_local Values values = {1, -2, 1234567890123456789LL, {10, 20, 30, 40}};
static thread_local long hidden = -77;
int global = 11;
static int table[8] = {1, 2, 3, 4, 5, 6, 7, 8};
[[gnu::noinline]] void fire(long long x, long long y, int i, int *p, unsigned short *u, bool b) {
    long long product = x * y;
    __asm__ volatile("" : "+r"(p), "+r"(u));
    MARKER(wide, product, x, y);
    MARKER(local, counter, values.c, values.h, values.l, hidden);
    MARKER(item, values.items[i], p[i], p[-i], u[i], table[i + 2]);
    MARKER(other, global, b, 200, -1LL, p[i] + 1);
    printf("wide %lld %lld %lld 0 0\n", product, x, y);
    printf("local %d %d %d %lld %ld\n", counter, values.c, values.h, values.l, hidden);
    printf("item %d %d %d %d %d\n", values.items[i], p[i], p[-i], u[i], table[i + 2]);
    printf("other %d %d %d %lld %d\n", global, b, 200, -1LL, p[i] + 1);
}
int main() {
    int p[4] = {-1, -2, -3, -4};
    unsigned short u[4] = {1, 65535, 3, 4};
    counter++, hidden--;
    for (int round = 0; round < 3; round++) fire(123456789012LL + round, -7, 1, p + 1, u, round & 1);
}
"""
PROGRAM = r"""#pragma D option quiet
zoo$target::: {
    printf("%s %d %d %d %d %d\n", probename,
        (int64_t)arg0, (int64_t)arg1, (int64_t)arg2, (int64_t)arg3, (int64_t)arg4);
}"""


@pytest.mark.parametrize(("isa", "compiler", "level"), BUILDS)
def test_arguments_are_what_the_program_prints(isa, compiler, level, tmp_path):
    if shutil.which(compiler) is None:
        pytest.skip(f"{compiler} is not installed")
    source, path = tmp_path / "fire.cc", tmp_path / "fire"
    source.write_text(SOURCE)
    # gcc's anchors of thread-local variables are labels that no file keeps.
    options = ["-std=c++17", "-static", "-w", level, f"-I{HEADERS}"]
    options += [] if "clang" in compiler else ["-fno-section-anchors"]
    subprocess.run([compiler, *options, source, "-o", path], check=True, timeout=60)
    said = []
    machine, output = start(isa, [path], report=said.append)
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        tracer.enable(PROGRAM)
        tracer.run()
        shown = tracer.text
    assert not [line for line in said if "reads as 0" in line]
    assert sorted(filter(None, shown.split("\n"))) == sorted(output.decode().splitlines())
    assert output.count(b"wide ") == 3
