"""Threads that do not share all that their process has."""

import pytest

from emu.guest.linux.calls import HANDLERS
from tests.emu.guest.linux.test_process_control import Started

VM, FS, FILES, SIGHAND, THREAD = 0x100, 0x200, 0x400, 0x800, 0x10000


def new_thread(run, flags):
    before = set(run.kernel.threads)
    with pytest.raises(StopIteration):
        next(HANDLERS["clone"](run.kernel, run.thread, [VM | SIGHAND | THREAD | flags, 0, 0, 0, 0]))
    (tid,) = set(run.kernel.threads) - before
    return run.kernel.threads[tid]


def test_a_thread_made_without_sharing_has_its_own():
    run = Started("x86_64")
    process, kernel = run.thread.process, run.kernel
    shared, around = process.files, process.surroundings
    apart = new_thread(run, FS)
    together = new_thread(run, FS | FILES)
    kernel.on_cpu.switch(apart)
    assert process.files is apart.files is not shared
    assert list(process.files) == list(shared)
    assert process.surroundings is around
    HANDLERS["close"](kernel, apart, [0])
    kernel.on_cpu.switch(together)
    assert process.files is shared
    assert 0 in list(shared)
    assert process.tables == [shared, apart.files]


def test_what_a_thread_has_alone_ends_with_it():
    run = Started("x86_64")
    apart = new_thread(run, 0)
    table, file = apart.files, apart.files.get(1)
    users = file.users
    run.kernel.endings.end_thread(apart)
    assert not list(table)
    assert file.users == users - 1
    assert run.thread.process.files.get(1) is file


def test_a_new_program_gets_what_its_thread_has():
    run = Started("x86_64")
    process = run.thread.process
    HANDLERS["unshare"](run.kernel, run.thread, [FS])
    apart = new_thread(run, FS)
    table, around = apart.files, apart.surroundings
    run.kernel.on_cpu.switch(apart)
    run.kernel.write(run.buffer, b"/proc/self/exe\0")
    HANDLERS["execve"](run.kernel, apart, [run.buffer, 0, 0])
    assert process.common is None
    assert (process.files, process.surroundings) == (table, around)
    assert apart.files is None
