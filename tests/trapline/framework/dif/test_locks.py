"""D's subroutines about locks: the results of FreeBSD's lock classes (lc_owner and lc_flags)."""

from __future__ import annotations

import pytest

from emu.guest.base import Abilities, Lock
from emu.support.words import BadAddressError
from tests.support.fake_guest import SHELL
from tests.trapline.framework.support import Bench, trace
from trapline.framework.dif.locks import QUESTIONS

LOCK = 0xFFFF_FFFF_8010_0000
OTHER = SHELL.address + 0x1000

FREE = Lock(held=False, owner=0, spins=False)
SHARED = Lock(held=True, owner=0, spins=False)
OURS = Lock(held=True, owner=SHELL.address, spins=False)
THEIRS = Lock(held=True, owner=OTHER, spins=False)
SPIN = Lock(held=True, owner=SHELL.address, spins=True)

# Of a free, a shared, our, another's and our spin lock.
ANSWERS = {
    "mutex_owned": (0, 1, 1, 1, 1),
    "mutex_owner": (0, 0, SHELL.address, OTHER, SHELL.address),
    "mutex_type_adaptive": (1, 1, 1, 1, 0),
    "mutex_type_spin": (0, 0, 0, 0, 1),
    "rw_read_held": (0, 1, 0, 0, 0),
    "rw_write_held": (0, 0, 1, 1, 1),
    "rw_iswriter": (0, 0, 1, 0, 1),
    "sx_shared_held": (0, 1, 0, 0, 0),
    "sx_exclusive_held": (0, 0, 1, 1, 1),
    "sx_isexclusive": (0, 0, 1, 0, 1),
}


class Locks(Bench):
    """A guest with one lock."""

    def __init__(self, program, lock=FREE):
        self.lock = lock
        super().__init__()
        self.dtrace.world.abilities = Abilities(
            lock=self.read, open_file=lambda number: {3: 0x1230}.get(number, 0), interrupt_level=lambda: 2
        )
        self.device = self.open(program)

    def read(self, address):
        if address < LOCK:
            raise BadAddressError(address)
        return self.lock if address == LOCK else None

    def answer(self):
        self.fire()
        return self.numbers()


def test_every_question_is_here():
    assert {number.name.lower() for number in QUESTIONS} == set(ANSWERS)


@pytest.mark.parametrize("question", ANSWERS)
def test_a_lock_answers_as_its_class_does(question):
    for lock, answer in zip((FREE, SHARED, OURS, THEIRS, SPIN), ANSWERS[question], strict=True):
        assert Locks(trace(f"{question}((void *){LOCK:#x})"), lock).answer() == [answer]


@pytest.mark.parametrize("address", [8, LOCK + 8])
def test_what_is_not_a_lock_is_a_bad_address(address):
    bench = Locks(f"f:entry {{ trace(mutex_owned((void *){address:#x})); }} ERROR {{ trace(arg4); trace(arg5); }}")
    bench.fire()
    ((_epid, _time, data),) = bench.records()
    assert [int.from_bytes(data[at : at + 8], "little") for at in (4, 12)] == [1, address]  # DTRACEFLT_BADADDR


@pytest.mark.parametrize("expression", ["mutex_owned((void *)0)", "getf(3)", "ipl"])
def test_a_guest_without_a_kernel_has_none_of_it(expression):
    bench = Bench(f"f:entry {{ trace((int64_t)({expression})); }} ERROR {{ trace(arg4); }}")
    bench.fire()
    assert bench.numbers() == [3]  # DTRACEFLT_ILLOP


def test_files_and_interrupts_are_what_the_guest_says():
    assert Locks(trace("getf(3)")).answer() == [0x1230]
    assert Locks(trace("getf(4)")).answer() == [0]
    assert Locks(trace("ipl")).answer() == [2]
