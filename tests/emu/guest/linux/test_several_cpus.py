"""Linux programs on several CPUs: threads run at the same time, in an order that a seed decides."""

import pytest

from emu.guest.kernel.boot import images
from emu.guest.linux.errno import EBUSY, LinuxError
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.linux.sched.cpus import list_of
from emu.guest.linux.sched.deadline import Reservation
from emu.isa import ISAS, X86_64
from tests.emu.guest.linux.elf_program import elf_program
from tests.emu.guest.linux.support import expected, run, zoo
from tests.emu.guest.linux.test_calls import EXPECTED

PROGRAM = """
self uint64_t last;
pid$target::thread_add:entry { @calls[cpu, tid] = count(); }
pid$target::thread_add:return { @back = sum(self->last > timestamp); self->last = timestamp; }
syscall:::entry { @system[cpu, probefunc] = count(); }
profile-4999 { @ticks[cpu] = count(); }
"""


def traced(isa, **options):
    ran = zoo(isa, "threads", PROGRAM, cpus=3, **options)
    assert ran.output == expected("threads", isa)
    return ran


@pytest.mark.parametrize("isa", ISAS)
def test_an_order_depends_on_the_seed_alone(isa):
    plain = zoo(isa, "threads", cpus=3, seed=1)
    ran, other = traced(isa, seed=1), traced(isa, seed=2)
    # Probes do not change the order of threads, either: a plain run takes the same time.
    assert (ran.machine.guest.now(), ran.instructions) == (plain.machine.guest.now(), plain.instructions)
    assert ran.found != other.found
    calls = ran.of("calls")
    assert {cpu for cpu, _tid in calls} == {0, 1, 2}
    assert len({tid for _cpu, tid in calls}) == 4
    assert sum(calls.values()) == 4 * 50
    assert ran.of("back") == {(): 0}, "the time of a thread does not go back"
    assert set(ran.of("ticks")) == {(0,), (1,), (2,)}, "profile-N fires on every CPU"
    assert len(set(ran.of("ticks").values())) == 1


def test_every_engine_has_the_same_order(monkeypatch):
    native = traced("riscv64", seed=3)
    monkeypatch.setenv("TRAPLINE_ENGINE", "reference")
    assert traced("riscv64", seed=3).found == native.found


def test_threads_share_the_work():
    alone, four = (zoo("aarch64", "threads", cpus=cpus).machine.guest.now() for cpus in (1, 4))
    assert four < alone


@pytest.mark.parametrize("isa", ISAS)
def test_threads_run_where_they_may(isa):
    ran = run(isa, (images.linux(ISAS[isa], "calls"), "cpus"), cpus=3, seed=5)
    assert ran.output == (EXPECTED / "cpus.txt").read_text()


def test_a_program_reads_the_number_of_its_cpu_from_the_counter(tmp_path):
    # sched_setaffinity(0, 8, {2}); rdtscp; exit(ecx)
    code = "6a04 4889e2 be08000000 31ff b8cb000000 0f05 0f01f9 89cf b83c000000 0f05"
    file = tmp_path / "program"
    file.write_bytes(elf_program("x86_64", bytes.fromhex(code)))
    file.chmod(0o755)
    guest = LinuxGuest(X86_64, Program(str(file)), cpus=4)
    guest.run(None)
    assert guest.exit_status == 2


def test_files_tell_how_many_cpus_there_are():
    guest = LinuxGuest(X86_64, Program(str(images.linux(X86_64, "zoo"))), cpus=5)
    root = guest.kernel.root
    cpus = root.get("sys").make("devices/system/cpu")
    assert cpus.get("online").content() == b"0-4\n"
    assert cpus.get("cpu4").get("topology").get("thread_siblings").content() == b"10\n"
    rows = root.get("proc").get("stat").content().splitlines()
    assert [row.split()[0] for row in rows[:6]] == [b"cpu", b"cpu0", b"cpu1", b"cpu2", b"cpu3", b"cpu4"]
    assert root.get("proc").get("cpuinfo").content().count(b"processor") == 5


@pytest.mark.parametrize(("mask", "text"), [(0, ""), (1, "0"), (0b1011, "0-1,3"), (0xFF, "0-7"), (0b101, "0,2")])
def test_cpus_are_listed_as_linux_does(mask, text):
    assert list_of(mask) == text


def test_deadlines_have_room_on_every_cpu():
    half = Reservation(6_000_000, 10_000_000, 10_000_000)
    half.check([half], cpus=2)
    with pytest.raises(LinuxError) as raised:
        half.check([half, half, half], cpus=2)
    assert raised.value.number == EBUSY
