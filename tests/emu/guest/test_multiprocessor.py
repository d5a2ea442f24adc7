"""Several CPUs over one RAM: atomic instructions, the order of turns, code that one of them patches."""

import pytest

from emu.assembly import machine_code
from emu.guest.function import CODE, FunctionFaultError
from emu.guest.multiprocessor import Multiprocessor
from emu.isa import ISAS

# Adds 1 to the word at the first argument, as often as the second one says; returns the word.
ATOMIC = {
    "x86_64": "again: lock inc qword ptr [rdi]; dec rsi; jne again; mov rax, [rdi]; ret",
    "i386": "mov ecx, [esp+4]; mov edx, [esp+8]; again: lock inc dword ptr [ecx]; dec edx; jne again; "
    "mov eax, [ecx]; ret",
    "aarch64": "again: ldxr x2, [x0]; add x2, x2, #1; stxr w3, x2, [x0]; cbnz w3, again; subs x1, x1, #1; "
    "b.ne again; ldr x0, [x0]; ret",
    "riscv64": "again: lr.d t0, (a0); addi t0, t0, 1; sc.d t1, t0, (a0); bnez t1, again; addi a1, a1, -1; "
    "bnez a1, again; ld a0, 0(a0); ret",
}
# The same with a load and a store, and a branch between them.
PLAIN = {
    "x86_64": "again: mov rax, [rdi]; jmp on; on: inc rax; mov [rdi], rax; dec rsi; jne again; ret",
    "i386": "mov ecx, [esp+4]; mov edx, [esp+8]; again: mov eax, [ecx]; jmp on; on: inc eax; mov [ecx], eax; "
    "dec edx; jne again; ret",
    "aarch64": "again: ldr x2, [x0]; b on; on: add x2, x2, #1; str x2, [x0]; subs x1, x1, #1; b.ne again; ret",
    "riscv64": "again: ld t0, 0(a0); j on; on: addi t0, t0, 1; sd t0, 0(a0); addi a1, a1, -1; bnez a1, again; ret",
}
TIMES = 300


def machine(isa, source, cpus=4, **how):
    return Multiprocessor(ISAS[isa], machine_code(ISAS[isa], source[isa]), cpus=cpus, **how)


def counted(made):
    place = made.allocate(8)
    results = made.call_all([(place, TIMES)] * len(made.cpus))
    return int.from_bytes(made.load(place, 4), "little"), results


@pytest.mark.parametrize("isa", ISAS)
def test_atomic_instructions_are_atomic_between_cpus(isa):
    total, results = counted(machine(isa, ATOMIC))
    assert total == 4 * TIMES
    assert max(results) == total


@pytest.mark.parametrize("isa", ISAS)
def test_a_load_and_a_store_lose_updates(isa):
    assert TIMES <= counted(machine(isa, PLAIN))[0] < 4 * TIMES


@pytest.mark.parametrize("isa", ISAS)
def test_a_seed_decides_everything(isa):
    runs = [counted(machine(isa, PLAIN, seed=seed)) for seed in (1, 1, 2)]
    assert runs[0] == runs[1] != runs[2]
    assert counted(machine(isa, PLAIN, seed=1, accelerated=False)) == runs[0]


def test_one_cpu_counts_as_a_function_guest_does():
    assert counted(machine("x86_64", PLAIN, cpus=1)) == (TIMES, [TIMES])


def test_a_patch_reaches_what_every_cpu_has_translated():
    made = machine("x86_64", {"x86_64": "mov eax, 1; ret"})
    assert made.call_all([()] * 4) == [1] * 4
    point = made.patcher.create(CODE + 1, b"\2", "test")
    made.patcher.install(point)
    assert made.call_all([()] * 4) == [2] * 4
    made.patcher.remove(point)
    assert made.call_all([()] * 4) == [1] * 4


def test_an_interrupt_runs_once_on_each_other_cpu():
    made, seen = machine("x86_64", ATOMIC), []
    place = made.allocate(8)

    def between(turn):
        if turn == 5:
            made.interrupt_others(lambda cpu: seen.append(cpu.cpu))

    made.call_all([(place, TIMES)] * 4, between=between)
    assert len(seen) == 3
    assert len(set(seen)) == 3


def test_a_fault_is_told_with_its_place():
    with pytest.raises(FunctionFaultError, match="faulted"):
        machine("x86_64", ATOMIC).call_all([(0, 1)] * 4)
    with pytest.raises(FunctionFaultError, match="had not returned"):
        machine("x86_64", {"x86_64": "again: jmp again"}).call_all([()] * 4, limit=20)
    with pytest.raises(ValueError, match="1 calls for 4 CPUs"):
        machine("x86_64", ATOMIC).call_all([()])


# -- caches of code

# Returns 1; with SYNC, after an instruction that makes the CPU fetch anew, and a jump.
ONE = {
    "x86_64": "SYNC mov eax, 1; ret",
    "i386": "SYNC mov eax, 1; ret",
    "aarch64": "SYNC mov w0, #1; ret",
    "riscv64": "SYNC li a0, 1; ret",
}
SYNC = {
    "x86_64": "xor eax, eax; cpuid; jmp on; on:",
    "i386": "xor eax, eax; cpuid; jmp on; on:",
    "aarch64": "isb; b on; on:",
    "riscv64": "fence.i; j on; on:",
}


def patched(isa, sync="", cpus=3, **how):
    """A machine whose CPUs have executed code that then returns 2, and what they return now."""
    one, two = (machine_code(ISAS[isa], ONE[isa].replace("1", n, 1).replace("SYNC", sync), CODE) for n in "12")
    assert len(one) == len(two)
    made = Multiprocessor(ISAS[isa], one, cpus=cpus, **how)
    assert made.call_all([()] * cpus) == [1] * cpus
    at = next(place for place, (old, new) in enumerate(zip(one, two, strict=True)) if old != new)
    at -= at % 2 if isa == "riscv64" else at % 4 if isa == "aarch64" else 0
    made.patcher.install(made.patcher.create(CODE + at, two[at : at + 4], "test"))
    return made


def results(made):
    return made.call_all([()] * len(made.cpus))


@pytest.mark.parametrize("isa", ISAS)
def test_a_cpu_may_execute_old_bytes_until_it_synchronizes(isa):
    assert results(patched(isa)) == [2] * 3
    made = patched(isa, code_caches=True)
    found = results(made)
    # The CPU that wrote sees its own stores on x86.
    assert sorted(found) == ([1, 1, 2] if ISAS[isa].traps.coherent else [1, 1, 1])
    for cpu in made.cpus:
        made.synchronize(cpu)
    assert results(made) == [2] * 3


@pytest.mark.parametrize("isa", ISAS)
def test_an_interrupt_synchronizes_where_the_isa_says_so(isa):
    made = patched(isa, code_caches=True)
    made.interrupt_others(lambda _cpu: None)
    stale = results(made).count(1)
    assert stale == {"aarch64": 1, "riscv64": 3}.get(isa, 0)


@pytest.mark.parametrize("isa", ISAS)
def test_an_instruction_synchronizes_its_own_cpu(isa):
    assert results(patched(isa, SYNC[isa], code_caches=True)) == [2] * 3
