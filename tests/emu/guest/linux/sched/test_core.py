"""The order of threads, and the cost of many waiting threads."""

import struct
import time
from dataclasses import dataclass

import pytest

from emu.guest.kernel.boot import images
from emu.guest.linux.errno import EBUSY, EINVAL, LinuxError
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.guest import LinuxGuest
from emu.guest.linux.launch import Program
from emu.guest.linux.net.netlink import NetlinkSocket, Ports
from emu.guest.linux.net.skb import Credentials
from emu.guest.linux.process.process import NOTHING, Life, Wait
from emu.guest.linux.sched.deadline import Budget, Reservation
from emu.guest.linux.sched.waitqueue import Blocked
from emu.guest.linux.time.alarms import DueQueue
from emu.isa import ISAS

MS = 1_000_000
FEW = Reservation(MS, 5 * MS, 10 * MS)


def test_what_is_due_comes_by_time_and_then_in_order():
    due = DueQueue()
    for name, when in (("c", 5), ("a", 3), ("d", 5), ("b", 4)):
        due.put(name, when)
    due.put("b", 9)
    due.forget("d")
    assert due.first() == 3
    assert due.take(5) == ["a", "c"]
    assert due.take(8) == []
    assert due.take(9) == ["b"]
    assert due.first() is None


def test_an_entry_that_is_put_repeatedly_takes_no_more_room():
    due = DueQueue()
    for when in range(10_000):
        due.put("timer", 10**9 - when)
    assert len(due._heap) < 100


@dataclass(eq=False)
class One:
    """What `Blocked` looks at of a thread."""

    tid: int
    life: Life = Life.RUNNABLE
    wait: Wait | None = None


def blocked(*waits, now=0):
    found = Blocked(lambda: now)
    threads = [One(100 + number, wait=wait) for number, wait in enumerate(waits)]
    for thread in reversed(threads):
        found.add(thread, thread.wait)
    return found, threads


def test_only_those_with_a_reason_look_again():
    key = object()
    found, (free, keyed, sleeper) = blocked(Wait(), Wait(key=key), Wait(key=NOTHING, deadline=50))
    assert found.to_look_at() == [free, keyed, sleeper]
    assert found.to_look_at() == [free]
    found.changed(object())
    assert found.to_look_at() == [free]
    found.changed(key)
    assert found.to_look_at() == [free, keyed]
    found.signalled(sleeper)
    assert found.to_look_at() == [free, sleeper]
    assert found.upcoming() == 50
    found.remove(free)
    found.remove(keyed)
    found.changed(key)
    assert found.to_look_at() == []


def test_those_whose_time_is_over_look_again():
    found, (late, early) = blocked(Wait(key=NOTHING, deadline=50), Wait(key=NOTHING, deadline=20), now=30)
    found.to_look_at()
    found, (late, early) = blocked(Wait(key=NOTHING, deadline=50), Wait(key=NOTHING, deadline=20), now=30)
    found._to_look.clear()
    assert found.to_look_at() == [early]
    assert late.life is Life.BLOCKED


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (Reservation(1000, 10 * MS, 10 * MS), EINVAL),
        (Reservation(6 * MS, 5 * MS, 10 * MS), EINVAL),
        (Reservation(10_000, 50_000, 50_000), EINVAL),
        (Reservation(9 * MS, 10 * MS, 10 * MS), EBUSY),
    ],
)
def test_a_reservation_that_cannot_be_kept_is_refused(asked, error):
    with pytest.raises(LinuxError) as refused:
        asked.check([FEW])
    assert refused.value.number == error


def test_who_has_used_his_time_waits_for_the_next_period():
    budget = Budget(FEW, now=0)
    budget.ran(MS // 2)
    assert budget.throttled_until is None
    budget.ran(MS)
    assert budget.throttled_until == 10 * MS
    budget.replenish()
    assert (budget.deadline, budget.left, budget.throttled_until) == (15 * MS, MS // 2, None)


def test_who_wakes_up_late_gets_a_new_deadline():
    budget = Budget(FEW, now=0)
    budget.woken(MS)
    assert budget.deadline == 6 * MS
    budget.ran(MS * 9 // 10)
    budget.woken(2 * MS)
    assert (budget.deadline, budget.left) == (6 * MS, MS // 10)
    budget.woken(7 * MS)
    assert (budget.deadline, budget.left) == (12 * MS, MS)


def test_a_dump_of_the_network_has_the_loopback_and_other_requests_are_refused():
    socket = NetlinkSocket(None, 2, "", 3, Credentials(7, 0, 0), FileMemory(lambda: 1 << 20), Ports())
    dump = struct.pack("<IHHII", 17, 18, 0x301, 5, 0) + b"\0" * 4
    other = struct.pack("<IHHII", 16, 16, 1, 6, 0)
    assert socket.send(dump + other, socket.credentials) == len(dump + other)
    link = socket.receive(4096).data
    assert struct.unpack_from("<IHHII", link) == (len(link), 16, 2, 5, 7)
    # The loopback has index 1; its name is an attribute.
    assert struct.unpack_from("<BxHiI", link, 16) == (0, 772, 1, 0x10049)
    assert struct.pack("<HH4s", 7, 3, b"lo\0\0") in link
    assert struct.unpack("<IHHIIi", socket.receive(100).data) == (20, 3, 2, 5, 7, 0)
    assert struct.unpack("<IHHIIi16s", socket.receive(100).data) == (36, 2, 0, 6, 7, -95, other)
    assert struct.unpack("<HxxII", socket.name) == (16, 7, 0)


@pytest.mark.parametrize("isa", ISAS)
def test_a_timer_of_a_nanosecond_costs_no_more_than_its_signals(isa):
    guest = LinuxGuest(ISAS[isa], Program(str(images.linux(ISAS[isa], "calls")), ("shortest_timers",)))
    begun = time.process_time()
    guest.run(None)
    assert guest.exit_status == 0
    assert time.process_time() - begun < 5


def turns(isa, quantum):
    """Run the program of threads; return how it exits, and the thread of each turn."""
    program = Program(str(images.linux(ISAS[isa], "zoo")), ("threads",))
    guest = LinuxGuest(ISAS[isa], program, quantum=quantum)
    schedule = guest.kernel.schedule
    begin, order = schedule._begin_turn, []
    schedule._begin_turn = lambda thread: (order.append(thread.tid), begin(thread))[1]
    while guest.exit_status is None:
        guest.run(None)
    return guest.exit_status, order


@pytest.mark.parametrize("isa", ISAS)
def test_a_small_quantum_interrupts_threads_wherever_they_are(isa):
    status, usual = turns(isa, None)
    short = turns(isa, 500)
    assert short == turns(isa, 500), "a run is the same every time"
    assert status == short[0]
    assert len(short[1]) > 10 * len(usual)
