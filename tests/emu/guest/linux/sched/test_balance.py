"""Threads of a Linux program are moved from CPUs that have more of them to those that have fewer."""

import pytest

from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.isa import X86_64
from tests.emu.guest.linux.elf_program import elf_program
from tests.emu.guest.linux.support import run

# sched_setaffinity(0, 8, {0}); fork() six times, and wait for all; each child may run on the CPUs of a mask (the last
# one's is another), and counts down from 4,000,000.
PROGRAM = (
    "bb01000000 e850000000 6a06 5d 6a39 58 0f05 85c0 7420 ffcd 75f3 bfffffffff 31f6 31d2 4531d2 6a3d 58 0f05 85c0 79eb"
    "31ff 6a3c 58 0f05 bb{all:02x}000000 83fd01 7505 bb{last:02x}000000 e810000000 b900093d00 ffc9 75fc 31ff 6a3c 58"
    "0f05 53 31ff 6a08 5e 4889e2 b8cb000000 0f05 5b c3"
)
# Nanoseconds that a child counts.
COUNTING = 80_000_000
CHILDREN = range(101, 107)


@pytest.fixture
def program(tmp_path):
    def make(all_, last):
        file = tmp_path / "program"
        file.write_bytes(elf_program("x86_64", bytes.fromhex(PROGRAM.format(all=all_, last=last))))
        file.chmod(0o755)
        return str(file)

    return make


def took(path, cpus, seed=0):
    guest = LinuxGuest(X86_64, Program(path), cpus=cpus, seed=seed)
    guest.run(None)
    assert guest.exit_status == 0
    return guest.now()


@pytest.mark.exhaustive
def test_a_cpu_without_a_thread_gets_one_that_may_run_there_at_last(program):
    both = program(0b11, 0b11)
    assert took(both, 1) > 6 * COUNTING
    assert 3 * COUNTING < took(both, 2) < 3.2 * COUNTING


def test_nothing_is_moved_where_it_may_not_run(program):
    assert took(program(0b01, 0b01), 2) > 6 * COUNTING


@pytest.mark.exhaustive
def test_a_cpu_that_has_a_thread_takes_others_from_a_longer_queue(program):
    path = program(0b11, 0b10)
    watch = """
    profile-997 /cpu == 1/ { @first[pid] = min(timestamp); }
    syscall::exit:entry { @ends[pid] = max(timestamp); }
    """
    ran = run("x86_64", (path,), watch, cpus=2, seed=1)
    first, ends = ran.of("first"), ran.of("ends")
    (alone,) = (pid for pid in CHILDREN if first.get((pid,)) == min(first[one] for one in first if one[0] in CHILDREN))
    before = [pid for pid in CHILDREN if first.get((pid,), ends[alone,]) < ends[alone,]]
    assert len(before) > 1, "the child that may run only there has not had CPU 1 for itself"
    assert took(path, 2, seed=1) == ran.machine.guest.now(), "probes do not change what is moved"
