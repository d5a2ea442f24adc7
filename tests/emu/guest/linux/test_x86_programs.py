"""x86 programs that load segment registers or set their own trap flag, beside the host's Linux."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from contextlib import contextmanager

import pytest

from emu.assembly.keystone_engine import available
from emu.engine import native_callbacks
from emu.isa import ISAS
from tests.emu.guest.linux.support import start
from trapline.lab.check.site.assembly_file import assembly_file
from trapline.machine.linux_machine import EvalTime

pytestmark = pytest.mark.skipif(not available(), reason="keystone is not installed")


@contextmanager
def program(isa, text):
    with assembly_file(ISAS[isa], text) as path:
        path.chmod(0o700)
        yield path


ENGINES = sorted({native_callbacks.available(), False})


def status(isa, text, **options):
    """Return a program's exit status; minus the number of the signal that has ended it."""
    with program(isa, text) as path:
        machine, _ = start(isa, [path], evaltime=EvalTime.EXEC, **options)
        machine.guest.run(None)
        return os.waitstatus_to_exitcode(machine.guest.kernel.first.status)


def status_here(isa, text):
    """Return the same of the host's Linux; None: it cannot run the program."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    with program(isa, text) as path:
        try:
            return subprocess.run([path], check=False).returncode
        except OSError:
            return None


# -- segments

# A segment of the thread whose first word is 0x51, its own flags; ecx is its selector.
SET = "mov ebx, esp; mov eax, 243; int 0x80"
OWN = f"""
    mov dword ptr [esp-32], -1; lea eax, [esp-20]; mov [esp-28], eax; mov dword ptr [esp-24], 0xfffff
    mov dword ptr [esp-20], 0x51; sub esp, 32; {SET}
    mov ecx, [esp]; lea ecx, [ecx*8+3]
"""
EXIT = "mov eax, 1; int 0x80"
SEGMENTS = {
    "its register": (f"{OWN}; mov fs, cx; mov ebx, fs:[0]", 0x51),
    "pop": (f"{OWN}; push ecx; pop gs; mov ebx, gs:[0]", 0x51),
    "memory": (f"{OWN}; mov [esp-8], ecx; mov fs, word ptr [esp-8]; mov ebx, fs:[0]", 0x51),
    "memory by two registers": (f"{OWN}; push ecx; xor edx, edx; mov fs, [esp+edx*4]; mov ebx, fs:[0]", 0x51),
    "the first entry": (f"{OWN}; mov ebx, [esp]", 12),
    "the second entry": (f"{OWN}; mov dword ptr [esp], -1; {SET}; mov ebx, [esp]", 13),
    "another base": (
        f"{OWN}; mov fs, cx; add dword ptr [esp+4], 4; mov dword ptr [esp+16], 9; {SET}; mov ebx, fs:[0]",
        9,
    ),
    "an entry that is cleared": (
        f"{OWN}; xor eax, eax; mov [esp+4], eax; mov [esp+8], eax; mov [esp+12], eax; {SET}; mov fs, cx; mov ebx, 7",
        -11,
    ),
    "its description": (
        f"{OWN}; xor eax, eax; mov [esp+8], eax; mov ebx, esp; mov eax, 244; int 0x80; mov ebx, [esp+8]; shr ebx, 12",
        0xFF,
    ),
    "no such entry": (
        f"{OWN}; mov dword ptr [esp], 5; mov ebx, esp; mov eax, 244; int 0x80; mov ebx, eax; neg ebx", 22,
    ),
    "code": (f"{OWN}; or dword ptr [esp+12], 4; {SET}; mov ebx, eax; neg ebx", 22),
    "ds and es": ("push ds; pop es; mov eax, ds; mov es, ax; push 6; pop ebx", 6),
    "ss": ("mov eax, ss; mov ss, ax; push 6; pop ebx", 6),
    "none": ("xor eax, eax; mov gs, ax; push 6; pop ebx; mov eax, gs; add ebx, eax", 6),
    "no descriptor": ("mov eax, 0x93; mov fs, ax; mov ebx, 6", -11),
}  # fmt: skip


@pytest.mark.parametrize("case", SEGMENTS)
def test_a_segment_register_is_loaded(case):
    text, wanted = SEGMENTS[case]
    assert status("i386", f"{text}; {EXIT}") == wanted


@pytest.mark.parametrize("case", SEGMENTS)
def test_the_hosts_linux_does_the_same(case):
    text, wanted = SEGMENTS[case]
    found = status_here("i386", f"{text}; {EXIT}")
    if found is None:
        pytest.skip("this host runs no programs of i386")
    assert found == wanted


@pytest.mark.parametrize("segment", ["ds", "es", "ss"])
def test_the_flat_segment_is_loaded_in_64_bit_programs_too(segment):
    text = f"mov eax, ss; mov {segment}, ax; push 6; pop rdi; mov eax, {segment}; sub eax, 0x2b; add edi, eax"
    assert status("x86_64", f"{text}; mov eax, 60; syscall") == 6


# -- the trap flag

# A handler of SIGTRAP counts at [ebp], or [rbp], and sums the codes behind it.
STEPPED = {
    "x86_64": """
        call behind_handler; inc dword ptr [rbp]; mov eax, [rsi+8]; add [rbp+4], eax; ret; behind_handler: pop rbx
        call behind_restorer; mov eax, 15; syscall; behind_restorer: pop rcx
        push 0; mov rbp, rsp; push 0; push rcx; push 0x04000004; push rbx
        mov eax, 13; mov edi, 5; mov rsi, rsp; xor edx, edx; mov r10d, 8; syscall
        pushfq; or dword ptr [rsp], 0x100; popfq; {text}; pushfq; and dword ptr [rsp], 0xfffffeff; popfq
        mov edi, {result}; mov eax, 60; syscall
    """,
    "i386": """
        call behind_handler; inc dword ptr [ebp]; mov eax, [esp+8]; mov eax, [eax+8]; add [ebp+4], eax; ret
        behind_handler: pop ebx; call behind_restorer; mov eax, 173; int 0x80; behind_restorer: pop ecx
        push 0; push 0; mov ebp, esp; push 0; push 0; push ecx; push 0x04000004; push ebx
        mov eax, 174; mov ebx, 5; mov ecx, esp; xor edx, edx; mov esi, 8; int 0x80
        pushfd; or dword ptr [esp], 0x100; popfd; {text}; pushfd; and dword ptr [esp], 0xfffffeff; popfd
        mov ebx, {result}; mov eax, 1; int 0x80
    """,
}
RESULTS = {"x86_64": ("[rbp]", "[rbp+4]"), "i386": ("[ebp]", "[ebp+4]")}
# The instructions that are stepped beside `text`: two that load the flags, and the last one that does.
OTHERS = 3
BOTH = ("x86_64", "i386")
# The ISAs, the code, and how many debug exceptions it has.
STEPS = {
    "nop": (BOTH, "nop", 1),
    "cpuid": (BOTH, "xor eax, eax; cpuid", 2),
    "rdtsc": (BOTH, "rdtsc", 1),
    "xgetbv": (("i386",), "xor ecx, ecx; xgetbv", 2),
    "a repetition": (BOTH, "lea edi, [esp-256]; cld; mov ecx, 3; std; xor ecx, ecx; rep stosb; cld", 7),
    "a jump": (BOTH, "jmp over; nop; over: nop", 2),
    "a system call": (("x86_64",), "mov eax, 39; syscall; nop; nop", 3),
    "a system call of i386": (("i386",), "mov eax, 20; int 0x80; nop; nop", 3),
    "a load of ss": (BOTH, "mov eax, ss; mov ss, ax; nop; nop", 3),
    "a load of another segment": (BOTH, "mov eax, ss; mov es, ax; nop", 3),
    "a load of gs from the stack": (("i386",), "push ss; pop gs; nop", 3),
}


def stepped(isa, case, result):
    return STEPPED[isa].format(text=STEPS[case][1], result=RESULTS[isa][result])


@pytest.mark.parametrize(("isa", "case"), [(isa, case) for case, (isas, _, _) in STEPS.items() for isa in isas])
def test_a_program_steps_itself(isa, case):
    """With the code TRAP_TRACE (2), also those that the emulated CPU leaves to the host."""
    wanted = STEPS[case][2] + OTHERS
    assert status(isa, stepped(isa, case, 0)) == wanted
    assert status(isa, stepped(isa, case, 1)) == 2 * wanted


@pytest.mark.parametrize(("isa", "case"), [(isa, case) for case, (isas, _, _) in STEPS.items() for isa in isas])
def test_it_steps_itself_so_on_the_hosts_linux(isa, case):
    found = status_here(isa, stepped(isa, case, 0))
    if found is None:
        pytest.skip(f"this host runs no programs of {isa}")
    assert found == STEPS[case][2] + OTHERS


# -- cmpxchg of 32 bits, which QEMU 5 makes clear the upper half of rax

# ecx is the new value, the word below the stack is 0 like eax; the status is 1 or 2 for what is wrong with rax or ZF.
COMPARED = "mov rax, 0x1234567800000000; mov ecx, 7; mov edx, 0; mov r9d, 7; lea rbx, [rsp-64]; mov [rbx], rdx"
KEEPS = """
    setne dil; mov rsi, 0x1234567800000000; cmp rax, rsi; mov eax, 0; setne al; movzx edi, dil; lea edi, [rax+rdi*2]
    mov eax, 60; syscall
"""
STORED = "; mov ecx, [rbx]; cmp ecx, 7; "
CMPXCHG = {
    "memory": "cmpxchg [rbx], ecx" + STORED,
    "with LOCK": "lock cmpxchg [rbx], ecx" + STORED,
    "an index": "mov esi, 4; cmpxchg [rbx+rsi*4-16], ecx" + STORED,
    "r9d": "lock cmpxchg [rbx], r9d" + STORED,
    "a register": "cmpxchg edx, ecx; cmp edx, 7",
    "r10d": "mov r10, -1; shl r10, 32; cmpxchg r10d, ecx; cmp r10, 7",
    "many": "lea rbx, [rsp-4096]; mov esi, 300; again: mov [rbx], edx; lock cmpxchg [rbx], ecx; dec esi; jne again"
    + STORED,
    "another number, which eax gets": "mov dword ptr [rbx], 9; cmpxchg [rbx], ecx; setne cl; cmp rax, 9; setne al; "
    "or al, cl; mov rax, 0x1234567800000000; dec cl",
    "64 bits": "mov [rbx], rax; cmpxchg [rbx], rcx" + STORED,
    "16 bits": "cmpxchg [rbx], cx" + STORED,
}


@pytest.mark.parametrize("accelerated", ENGINES)
@pytest.mark.parametrize("name", CMPXCHG)
def test_cmpxchg_that_succeeds_leaves_rax_as_it_was(name, accelerated):
    text = f"{COMPARED}; {CMPXCHG[name]}; {KEEPS}"
    assert status("x86_64", text, accelerated=accelerated) == 0
    assert status_here("x86_64", text) in {0, None}


def test_cmpxchg_that_is_corrected_counts_once():
    text = f"{COMPARED}; lock cmpxchg [rbx], ecx; {KEEPS}"
    counts = []
    for start_of_rax in ("0x1234567800000000", "0"):
        with program("x86_64", text.replace("0x1234567800000000", start_of_rax, 1)) as path:
            machine, _ = start("x86_64", [path], evaltime=EvalTime.EXEC)
            machine.guest.run(None)
            counts.append(machine.guest.engine.instructions)
    assert counts[0] == counts[1]
