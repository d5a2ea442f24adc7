"""Stacks of programs without frame pointers in the kernel guest, with their lines, on every ISA."""

from __future__ import annotations

import subprocess

import pytest

from emu.isa import ISAS
from trapline.consumer.tracer import Tracer
from trapline.lab.objects.build import BuildError, compiler
from trapline.machine.kernel_machine import KernelOptions, boot, kernel_guest

PROGRAM = """\
#define NOINLINE __attribute__((noinline))
#if defined __x86_64__
#define EXIT(status) __asm__ volatile("syscall" :: "a"(1), "D"(status))
#elif defined __i386__
/* The arguments stand behind a word where a return address would be. */
#define EXIT(status) \\
    __asm__ volatile("push %1; push $0; .cfi_adjust_cfa_offset 8; int $0x80; add $8, %%esp;" \\
        ".cfi_adjust_cfa_offset -8" \\
        :: "a"(1), "b"(status) : "memory")
#else
#ifdef __aarch64__
#define CALL "mov x8, 1; mov x0, %0; svc 0"
#else
#define CALL "li t0, 1; mv a0, %0; ecall"
#endif
#define EXIT(status) __asm__ volatile(CALL :: "r"((long)status) : "memory")
#endif
NOINLINE int leaf(int n) { EXIT(n); return n + 1; }
NOINLINE int middle(int n) { volatile int a[8]; a[n & 7] = n; return leaf(a[n & 7]) * 3; }
NOINLINE int outer(int n) { return middle(n) + 1; }
void _start(void) { outer(0); for (;;) __asm__ volatile(""); }
"""
FLAGS = [
    "-O2",
    "-g",
    "-ffreestanding",
    "-nostdlib",
    "-static",
    "-no-pie",
    "-fomit-frame-pointer",
    "-fno-stack-protector",
]
FLAGS += ["-fasynchronous-unwind-tables", "-Wl,-Ttext-segment=0x400000,-z,max-page-size=4096,--build-id=none"]


@pytest.mark.parametrize("isa", ISAS.values(), ids=lambda isa: isa.name)
def test_the_stack_of_a_program_without_frame_pointers_is_whole(isa, tmp_path):
    (tmp_path / "deep.c").write_text(PROGRAM)
    try:
        command = [*compiler(isa), *isa.elf.toolchain.options, *FLAGS, "-o", "deep", "deep.c"]
    except BuildError as error:
        pytest.skip(str(error))
    subprocess.run(command, cwd=tmp_path, check=True)
    added = {"bin/deep": (tmp_path / "deep").read_bytes()}
    machine = boot(kernel_guest(KernelOptions(isa=isa, command="deep", added=added)))
    with Tracer(machine.guest, machine.dtrace, {"lines": None}, provide=machine.probes.provide) as tracer:
        tracer.session.symbols.lines = True
        tracer.enable(
            'syscall::exit:entry /execname == "deep"/ { @[ustack(), umod(ucaller), usym(ucaller)] = count(); }'
        )
        tracer.run()
        (element,) = tracer.aggregations()
    stack, module, symbol = element.keys
    names = [frame.name.partition("+")[0] if "+" in frame.name else frame.name for frame in stack]
    assert names[:4] == ["deep`leaf", "deep`middle", "deep`outer", "deep`_start"]
    first = 1 + next(at for at, line in enumerate(PROGRAM.splitlines()) if " leaf(" in line)
    assert [frame.name.rpartition(" ")[2] for frame in stack[:4]] == [f"(deep.c:{first + at})" for at in range(4)]
    assert (module, symbol, element.value) == ("deep", "deep`middle", 1)
