"""prctl, and what follows from it when a process runs another program or ends."""

import pytest

from emu.guest.kernel.boot import images
from emu.guest.linux.calls import HANDLERS
from emu.guest.linux.errno import EINVAL, EPERM, LinuxError
from emu.guest.linux.fs.regular import RegularFile
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.linux.process.cred import Ids
from emu.isa import ISAS
from emu.isa.linux_signals import Signal

SET_DEATH_SIGNAL, GET_DEATH_SIGNAL, GET_DUMPABLE, SET_DUMPABLE = 1, 2, 3, 4
GET_SECURE_BITS, SET_SECURE_BITS, SET_REAPER, GET_REAPER = 27, 28, 36, 37
SET_NO_NEW_PRIVILEGES, GET_NO_NEW_PRIVILEGES, AMBIENT = 38, 39, 47
SCHED_SIZES = (48, 56)
isas = pytest.mark.parametrize("isa", ISAS)


class Started:
    """A program that has come to its main, and makes calls."""

    def __init__(self, isa):
        self.guest = LinuxGuest(ISAS[isa], Program(str(images.linux(ISAS[isa], "zoo")), ("recursion",)))
        self.guest.run_to_start(main=True)
        self.kernel = self.guest.kernel
        self.thread = self.kernel.current
        self.buffer = (self.guest.engine.read_register(self.guest.isa.registers.sp) - 256) & ~15

    def prctl(self, *arguments, thread=None):
        return HANDLERS["prctl"](self.kernel, thread or self.thread, [*arguments, 0, 0, 0, 0, 0][:5])

    def number(self):
        return int.from_bytes(self.kernel.read(self.buffer, 4), "little")

    def fork(self, parent):
        """Return the first thread of a child."""
        before = set(self.kernel.threads)
        call = HANDLERS["clone"](self.kernel, parent, [int(Signal.SIGCHLD), 0, 0, 0, 0])
        with pytest.raises(StopIteration):
            next(call)
        (child,) = set(self.kernel.threads) - before
        return self.kernel.threads[child]


@isas
def test_what_is_set_is_told(isa):
    run = Started(isa)
    assert run.prctl(GET_DUMPABLE) == 1
    run.prctl(SET_DUMPABLE, 0)
    assert run.prctl(GET_DUMPABLE) == 0
    run.prctl(SET_DEATH_SIGNAL, 15)
    run.prctl(GET_DEATH_SIGNAL, run.buffer)
    assert run.number() == 15
    run.prctl(SET_REAPER, 7)
    run.prctl(GET_REAPER, run.buffer)
    assert run.number() == 1
    assert run.prctl(GET_SECURE_BITS) == run.prctl(SET_SECURE_BITS, 0) == 0
    assert run.prctl(AMBIENT, 1, 5) == run.prctl(AMBIENT, 4) == 0


@pytest.mark.parametrize(
    ("arguments", "number"),
    [
        ((SET_DEATH_SIGNAL, 65), EINVAL),
        ((SET_DUMPABLE, 2), EINVAL),
        ((SET_SECURE_BITS, 1), EPERM),
        ((SET_NO_NEW_PRIVILEGES, 0), EINVAL),
        ((SET_NO_NEW_PRIVILEGES, 1, 1), EINVAL),
        ((GET_NO_NEW_PRIVILEGES, 1), EINVAL),
        ((AMBIENT, 2, 5), EPERM),
        ((AMBIENT, 1, 64), EINVAL),
        ((AMBIENT, 4, 1), EINVAL),
        ((AMBIENT, 9, 1), EINVAL),
        ((12345,), EINVAL),
    ],
)
def test_wrong_arguments_are_refused(arguments, number):
    with pytest.raises(LinuxError) as error:
        Started("x86_64").prctl(*arguments)
    assert error.value.number == number


@isas
def test_a_process_gets_the_signal_it_has_asked_for_when_its_parent_ends(isa):
    run = Started(isa)
    parent = run.fork(run.thread)
    asks, asks_not = run.fork(parent), run.fork(parent)
    run.prctl(SET_DEATH_SIGNAL, int(Signal.SIGTERM), thread=asks)
    grandchild = run.fork(asks)
    run.kernel.endings.exit_process(parent.process, 0)
    assert [info.number for info in asks.process.pending] == [Signal.SIGTERM]
    assert not asks_not.process.pending
    assert not grandchild.parent_death_signal, "a child has to ask for itself"


@isas
def test_orphans_get_the_next_reaper_above_as_their_parent(isa):
    run = Started(isa)
    reaper = run.fork(run.thread)
    between = run.fork(reaper)
    parent = run.fork(between)
    orphan = run.fork(parent)
    run.prctl(SET_REAPER, 1, thread=reaper)
    run.kernel.endings.exit_process(parent.process, 0)
    assert orphan.process.parent is reaper.process
    assert orphan.process in reaper.process.children
    run.kernel.endings.exit_process(reaper.process, 0)
    assert orphan.process.parent is run.thread.process


def test_without_new_privileges_a_program_has_no_other_owner():
    run = Started("x86_64")
    program = RegularFile(0o6755)
    program.uid = program.gid = 5
    credentials = run.thread.process.credentials
    assert run.prctl(GET_NO_NEW_PRIVILEGES) == 0
    run.prctl(SET_NO_NEW_PRIVILEGES, 1)
    assert run.prctl(GET_NO_NEW_PRIVILEGES) == 1
    credentials.executed(program)
    assert credentials.user == credentials.group == Ids(0, 0, 0, 0)
    assert run.fork(run.thread).process.credentials.no_new_privileges
    credentials.no_new_privileges = False
    credentials.executed(program)
    assert credentials.user.effective == credentials.group.effective == 5


@isas
@pytest.mark.parametrize("size", SCHED_SIZES)
def test_a_thread_hears_all_that_it_asks_of_its_scheduling(isa, size):
    run = Started(isa)
    run.kernel.write(run.buffer, b"\xff" * 64)
    assert HANDLERS["sched_getattr"](run.kernel, run.thread, [0, run.buffer, size, 0]) == 0
    data = run.kernel.read(run.buffer, 64)
    assert int.from_bytes(data[:4], "little") == size
    assert data[size:] == b"\xff" * (64 - size)
    assert not any(data[24:size])


def test_name_spaces_have_numbers():
    run = Started("x86_64")
    directory = run.kernel.root.get("proc").get(str(run.guest.target)).get("ns")
    assert set(directory.entries()) >= {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"}
    link = directory.get("user")
    assert link.target == f"user:[{link.follow().number}]"
    assert directory.get("pid_for_children").target == directory.get("pid").target
