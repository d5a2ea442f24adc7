"""The cpc provider counts the events of Linux programs, whatever switches between them.

The program forks; parent and child execute the same loop, each with its own stack.  What each of
its instructions does is written beside it; qemu-user says how often each one runs.
"""

import ctypes
import re
import shutil
import subprocess
from collections import Counter

import pytest

from emu.assembly.assembler import assemble
from emu.elf.symbols import Binding, SymbolType
from emu.elf.writer import ALLOC, EXECINSTR, EXECUTABLE, OutputSection, OutputSymbol, elf_file
from emu.engine.events.event_counts import Alarm, EventCounts
from emu.engine.events.event_words import Counted, Mode
from emu.guest.kernel.boot import images
from emu.isa import ISAS
from emu.isa.base import Events
from emu.support.plain import function_address
from trapline.consumer.tracer import Tracer
from trapline.machine.linux_machine import EvalTime, LinuxOptions, start

BASE = 0x400000
TURNS = 4000
AT_BLOCK = ctypes.CFUNCTYPE(None, ctypes.c_uint64)
LOAD, STORE, BRANCH = Events.LOAD, Events.STORE, Events.BRANCH
MARKS = {"l": LOAD, "s": STORE, "b": BRANCH}
# fork (or clone with SIGCHLD), the loop, wait4 in the parent, exit_group.
PROGRAMS = {
    "x86_64": """
        mov eax, 57
        syscall
        mov ebx, eax
        mov ecx, @TURNS
    1:  mov rax, [rsp]          | l
        mov [rsp - 64], rax     | s
        add [rsp - 64], rax     | ls
        lea rdx, [rsp - 8]
        push rax                | s
        pop rax                 | l
        call 2f                 | sb
        sub ecx, 1
        jne 1b                  | b
        test ebx, ebx
        je 3f                   | b
        mov eax, 61
        mov rdi, -1
        xor esi, esi
        xor edx, edx
        xor r10d, r10d
        syscall
    3:  mov eax, 231
        xor edi, edi
        syscall
    2:  ret                     | lb
    """,
    "i386": """
        mov eax, 2
        int 0x80
        mov ebx, eax
        mov ecx, @TURNS
    1:  mov eax, [esp]          | l
        mov [esp - 64], eax     | s
        add [esp - 64], eax     | ls
        lea edx, [esp - 8]
        push eax                | s
        pop eax                 | l
        call 2f                 | sb
        sub ecx, 1
        jne 1b                  | b
        test ebx, ebx
        je 3f                   | b
        mov eax, 114
        mov ebx, -1
        xor ecx, ecx
        xor edx, edx
        xor esi, esi
        int 0x80
    3:  mov eax, 252
        xor ebx, ebx
        int 0x80
    2:  ret                     | lb
    """,
    "aarch64": """
        mov x8, #220
        mov x0, #17
        mov x1, #0
        mov x2, #0
        mov x3, #0
        mov x4, #0
        svc #0
        mov x19, x0
        mov x20, #@TURNS
    1:  ldr x0, [sp]            | l
        str x0, [sp, #-64]      | s
        ldp x0, x1, [sp]        | l
        stp x0, x1, [sp, #-16]! | s
        add sp, sp, #16
        bl 2f                   | b
        subs x20, x20, #1
        b.ne 1b                 | b
        cbz x19, 3f             | b
        mov x8, #260
        mov x0, #-1
        mov x1, #0
        mov x2, #0
        mov x3, #0
        svc #0
    3:  mov x8, #94
        mov x0, #0
        svc #0
    2:  ret                     | b
    """,
    "riscv64": """
        addi a7, zero, 220
        addi a0, zero, 17
        addi a1, zero, 0
        addi a2, zero, 0
        addi a3, zero, 0
        addi a4, zero, 0
        ecall
        addi s1, a0, 0
        lui s2, @HIGH
        addi s2, s2, @LOW
    1:  ld a0, 0(sp)            | l
        c.ldsp a1, 8(sp)        | l
        sd a0, -64(sp)          | s
        addi a2, sp, -128
        amoadd.d a0, a1, (a2)   | ls
        jal ra, 2f              | b
        addi s2, s2, -1
        bne s2, zero, 1b        | b
        beq s1, zero, 3f        | b
        addi a7, zero, 260
        addi a0, zero, -1
        addi a1, zero, 0
        addi a2, zero, 0
        addi a3, zero, 0
        ecall
    3:  addi a7, zero, 94
        addi a0, zero, 0
        ecall
    2:  c.jr ra                 | b
    """,
}
isas = pytest.mark.parametrize("isa", ISAS)


class Built:
    """A program in a file, and what its instructions do, by address."""

    def __init__(self, isa, folder, turns=TURNS):
        numbers = {"@TURNS": turns, "@HIGH": (turns + 2048) >> 12, "@LOW": turns - ((turns + 2048) >> 12 << 12)}
        text = PROGRAMS[isa].strip()
        for name, number in numbers.items():
            text = text.replace(name, str(number))
        lines = text.splitlines()
        text = "\n".join(line.partition("|")[0] for line in lines)
        made = assemble(ISAS[isa], text, BASE)
        code = b"".join(one.code for one in made)
        self.events, address = {}, BASE
        self.loop = Counter()
        """The addresses of the instructions of one turn."""
        inside = False
        for line, one in zip(lines, made, strict=True):
            inside |= "1:" in line
            if inside or "2:" in line:
                self.loop[address] = 1
            inside &= "1b" not in line
            self.events[address] = Events(sum(MARKS[mark] for mark in line.partition("|")[2].strip()))
            address += len(one.code)
        section = OutputSection(".text", ALLOC | EXECINSTR, code, BASE)
        symbol = OutputSymbol("work", BASE, len(code), SymbolType.FUNC, Binding.GLOBAL)
        self.path = folder / f"events-{isa}-{turns}"
        self.path.write_bytes(elf_file(ISAS[isa], EXECUTABLE, [section], [symbol], BASE))
        self.path.chmod(0o755)

    def sums(self, times):
        """Return the sums of a run, by how often each instruction ran."""
        wanted = {
            Counted.INSTRUCTIONS: lambda _events: True,
            Counted.LOADS: lambda events: LOAD in events,
            Counted.STORES: lambda events: STORE in events,
            Counted.ACCESSES: lambda events: bool(events & (LOAD | STORE)),
            Counted.BRANCHES: lambda events: BRANCH in events,
        }
        return {
            what: sum(count for address, count in times.items() if holds(self.events[address]))
            for what, holds in wanted.items()
        }


@pytest.fixture
def built(isa, tmp_path):
    return Built(isa, tmp_path)


def started(isa, *words, **options):
    return start(LinuxOptions(tuple(map(str, words)), isa=ISAS[isa], evaltime=EvalTime.EXEC, **options))


def sums(machine, program=""):
    """Run a program; return its sums up to the start of its last block, and the tracer."""
    counts = machine.dtrace.provider("cpc").counts
    counts.add(Alarm(Counted.LOADS, (Mode.USER,), 1 << 60, lambda: None))
    with Tracer(machine.guest, machine.dtrace, target=machine.target, provide=machine.probes.provide) as tracer:
        if program:
            tracer.enable(program)
        tracer.run()
        found = {(element.name, *element.keys): element.value for element in tracer.aggregations()}
    return {what: counts.total(what, (Mode.USER,)) for what in Counted}, found


def trace_of_qemu(isa, path):
    """Return how often each instruction ran, in both processes."""
    qemu = shutil.which(f"qemu-{isa}")
    if qemu is None:
        pytest.skip(f"qemu-{isa} (Debian: qemu-user) is not installed")
    log = path.with_suffix(".log")
    subprocess.run([qemu, "-singlestep", "-d", "exec,nochain", "-D", log, path], timeout=60, check=True)
    return Counter(int(pc, 16) for pc in re.findall(r"^Trace .*?\[\w+/(\w+)/", log.read_text(), re.MULTILINE))


# The last block of the program: it exits.
LAST = 3
# Of each turn, of a program's two processes.
LOOP = 2 * TURNS


@isas
def test_the_events_of_two_processes_are_those_that_qemu_executes(isa, built):
    times = trace_of_qemu(isa, built.path)
    assert max(times.values()) == LOOP
    wanted = built.sums(times)
    found, _ = sums(started(isa, built.path))
    assert found == wanted | {Counted.INSTRUCTIONS: wanted[Counted.INSTRUCTIONS] - LAST}


@isas
@pytest.mark.parametrize("quantum", [37, 100_000])
def test_turns_of_any_length_make_no_difference(isa, built, quantum):
    found, _ = sums(started(isa, built.path, quantum=quantum))
    assert found == sums(started(isa, built.path))[0]


@isas
def test_the_events_are_the_same_in_python(isa, built, monkeypatch):
    found, _ = sums(started(isa, built.path))
    assert found == sums(started(isa, built.path, accelerated=False))[0]
    kept = []

    def in_python(counts):
        kept.append(AT_BLOCK(counts._enter))
        return function_address(kept[-1])

    monkeypatch.setattr(EventCounts, "_at_block", in_python)
    assert found == sums(started(isa, built.path))[0]


@isas
def test_probes_do_not_change_the_events(isa, built):
    """Every instruction has a breakpoint; some run as copies elsewhere, and are counted once."""
    found, _ = sums(started(isa, built.path))
    probed, fired = sums(started(isa, built.path), "pid$target:::{ @ = count(); }")
    assert fired["_",] > TURNS
    # Breakpoints divide its last block.
    assert 0 <= probed.pop(Counted.INSTRUCTIONS) - found.pop(Counted.INSTRUCTIONS) < LAST
    assert probed == found


def times(isa, program, *clauses):
    """Return the records of system calls and of time."""
    machine = started(isa, images.linux(ISAS[isa], "zoo"), program)
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable("syscall:::, profile-4999 { trace(timestamp); trace(tid); trace(arg0); trace(arg1); }")
        for clause in clauses:
            tracer.enable(clause)
        tracer.run()
        return tracer.text, {element.name: element.value for element in tracer.aggregations()}


@isas
@pytest.mark.parametrize("program", ["threads", "processes", "signals"])
def test_a_trace_is_the_same_with_the_provider(isa, program):
    text, _ = times(isa, program)
    counted, fired = times(
        isa,
        program,
        "cpc:::accesses-user-5000, cpc:::branches-all-5000, cpc:::instructions-user-5000 { @a = count(); }",
    )
    assert text.count("\n") > 20
    assert counted == text
    assert fired["a"] > 0


@isas
def test_a_clause_sees_the_function_of_the_program(isa, built):
    machine = started(isa, built.path)
    counts = machine.dtrace.provider("cpc").counts
    counts.add(Alarm(Counted.LOADS, (Mode.USER,), 1 << 60, lambda: None))
    with Tracer(machine.guest, machine.dtrace) as tracer:
        tracer.enable("cpc:::PAPI_ld_ins-user-5000 { @[arg0, ufunc(arg1)] = count(); }")
        list(tracer.events())
        elements = list(tracer.aggregations())
    assert all("`work" in str(element.keys[1]) for element in elements)
    assert sum(element.value for element in elements) == counts.total(Counted.LOADS, (Mode.USER,)) // 5000 > 1
