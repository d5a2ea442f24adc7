"""Requests of hostile programs take no more of the host's memory and time than the guest has."""

import struct
import time
from pathlib import Path

import pytest

from emu.guest.linux.errno import LinuxError
from emu.guest.linux.fs.page_cache import Content, FileMemory
from emu.guest.linux.fs.stdio import Standard
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.linux.mm import address_space
from emu.guest.observer import Observer
from emu.isa import ISAS, X86_64
from tests.fuzz.inputs.rooted import DATA, executable
from tests.support.memory import measured

ENOMEM, EFAULT, EINVAL, E2BIG, EAGAIN = 12, 14, 22, 7, 11
MIB = 1 << 20
AT_FDCWD = -100
NONBLOCK, SET_PIPE_SIZE = 0o4000, 1031
RENAME_EXCHANGE = 2


class Script(Observer):
    """Makes system calls one after another; an argument may be a function of the results so far."""

    def __init__(self, guest, calls):
        self.results = []
        self._guest = guest
        self._calls = iter(calls)
        self._numbers = {name: number for number, name in guest.isa.linux.calls.items()}

    def load(self):
        name, *arguments = next(self._calls, ("exit_group", 0))
        kernel = self._guest.kernel
        kernel.engine.write_register(kernel.abi.call_number, self._numbers[name])
        for register, value in zip(kernel.isa.calling.system_call_arguments, arguments, strict=False):
            number = value(self.results) if callable(value) else value
            kernel.engine.write_register(register, number & kernel.isa.address_mask)

    def system_call_done(self, thread, _name, result):
        if thread is self._guest.kernel.current:
            self.results.append(result)
            self.load()


def make(calls, *, isa=X86_64, data=b"", ram=256 * MIB):
    """Make system calls; return their results, and the MiB and seconds that they took."""
    Path("program").write_bytes(executable(isa, isa.linux.system_call * (len(calls) + 2)))
    guest = LinuxGuest(isa, Program("./program"), standard=Standard(), ram=ram, accelerated=False)
    guest.user_store(DATA, data or bytes(8))
    script = Script(guest, calls)
    guest.kernel.observers.append(script)
    script.load()
    since = time.process_time()
    with measured() as memory:
        guest.run(10_000_000_000)
    return script.results[: len(calls)], memory.peak / MIB, time.process_time() - since


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program").touch(0o755)


def result(number):
    return lambda results: results[number]


def test_a_hole_of_any_size_costs_nothing():
    calls = [
        ("memfd_create", DATA, 0),
        ("ftruncate", result(0), 1 << 62),
        ("fallocate", result(0), 3, 0, 1 << 61),
        ("pread64", result(0), DATA, 1 << 40, 0),
        ("ftruncate", result(0), 1),
    ]
    results, used, seconds = make(calls)
    assert results[1:] == [0, 0, -EFAULT, 0]
    assert 0 < used < 200
    assert seconds < 5


def test_asking_what_is_in_memory_costs_nothing():
    calls = [("mmap", 0, 1 << 40, 3, 0x4022, -1, 0), ("mincore", result(0), 1 << 40, DATA)]
    results, used, seconds = make(calls)
    assert results[1] == -EFAULT
    assert 0 < used < 50
    assert seconds < 2


def test_the_same_memory_in_many_parts_is_written_in_part():
    vector = b"".join(struct.pack("<QQ", DATA, 8192) for _ in range(500))
    results, used, _ = make([("memfd_create", DATA, 0), ("writev", result(0), DATA, 500)], data=vector, ram=4 * MIB)
    assert results[1] == MIB, "a quarter of the guest's memory"
    assert 0 < used < 100


def test_full_pipes_count_against_the_guests_memory():
    calls = []
    for pipe in range(40):
        calls += [
            ("pipe2", DATA, NONBLOCK),
            ("fcntl", 4 + 2 * pipe, SET_PIPE_SIZE, MIB),
            *[("write", 4 + 2 * pipe, DATA, 8192)] * 8,
        ]
    results, _, _ = make(calls, ram=1 * MIB)
    assert -ENOMEM in results


@pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
def test_a_directory_does_not_change_places_with_one_that_holds_it(isa):
    data = b"a\0".ljust(16, b"\0") + b"a/b\0".ljust(16, b"\0")
    calls = [
        ("mkdirat", AT_FDCWD, DATA, 0o700),
        ("mkdirat", AT_FDCWD, DATA + 16, 0o700),
        ("renameat2", AT_FDCWD, DATA, AT_FDCWD, DATA + 16, RENAME_EXCHANGE),
        ("renameat2", AT_FDCWD, DATA + 16, AT_FDCWD, DATA, RENAME_EXCHANGE),
    ]
    results, _, _ = make(calls, isa=isa, data=data)
    assert results == [0, 0, -EINVAL, -EINVAL]


def test_there_are_no_more_threads_than_memory_lets():
    forks = [("fork",)] * 40
    results, _, _ = make(forks, ram=4 * MIB)
    assert -EAGAIN in results


def test_more_arguments_than_a_stack_holds_are_refused_before_they_are_read():
    data = struct.pack("<Q", DATA + 4096) * 512 + b"x" * 4088 + b"program\0"
    results, _, _ = make([("execve", DATA + 8184, DATA, 0)], data=data)
    assert results == [-E2BIG]


def test_a_part_that_no_memory_holds_is_refused_at_once():
    content = Content(b"abc")
    content.memory = FileMemory(lambda: MIB)
    with pytest.raises(LinuxError, match="ENOSPC"):
        content.allocate(0, 1 << 35)
    content.write(0, b"x")
    content.truncate(1 << 60)
    content.clear(0, 1 << 60)
    assert (content.size, content.read(0, 4)) == (1 << 60, bytes(4))


def test_the_lowest_free_descriptor_is_the_next():
    calls = [
        *[("memfd_create", DATA, 0)] * 4,
        ("close", 4),
        ("close", 3),
        *[("memfd_create", DATA, 0)] * 3,
        ("fcntl", 0, 0, 100),
        ("fcntl", 0, 0, 0),
        ("close", 100),
        ("fcntl", 0, 0, 7),
        ("memfd_create", DATA, 0),
    ]
    results, _, _ = make(calls)
    assert results == [3, 4, 5, 6, 0, 0, 3, 4, 7, 100, 8, 0, 9, 10]


def test_a_process_has_only_so_many_areas(monkeypatch):
    monkeypatch.setattr(address_space, "AREAS_MAX", 12)
    calls = [("mmap", 0, 4096, 1 + 2 * (place % 2), 0x22, -1, 0) for place in range(12)]
    results, _, _ = make(calls)
    assert results[0] > 0
    assert results[-1] == -ENOMEM
