"""Tracepoints in one memory: in any order of installing and removing, the bytes are restored."""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from emu.probe.patcher import Patcher
from emu.support.words import BadAddressError

# A page ends in the middle of the program.
BASE = 0xFFFF_FFFF_8020_0FF0
PROGRAM = bytes(range(100, 132))
OWNERS = ("fbt", "kinst")


class Memory:
    """Some bytes at `BASE`, and what was written to them."""

    def __init__(self, data=PROGRAM):
        self.data = bytearray(data)
        self.written = []

    def _place(self, address, size):
        if not BASE <= address <= address + size <= BASE + len(self.data):
            raise BadAddressError(address)
        return slice(address - BASE, address - BASE + size)

    def read(self, address, size):
        return bytes(self.data[self._place(address, size)])

    def write_code(self, address, data):
        self.data[self._place(address, len(data))] = data
        self.written.append((address, data))


@pytest.fixture
def memory():
    return Memory()


@pytest.fixture
def patcher(memory):
    return Patcher(memory)


def test_a_new_tracepoint_has_changed_nothing(patcher, memory):
    tracepoint = patcher.create(BASE + 4, b"\xcc", "fbt")
    assert (tracepoint.original, tracepoint.patch, tracepoint.owner) == (b"h", b"\xcc", "fbt")
    assert not tracepoint.installed
    assert memory.written == []


def test_installing_writes_the_patch_and_removing_writes_the_original_each_once(patcher, memory):
    tracepoint = patcher.create(BASE + 4, b"\x73\x00\x10\x00", "fbt")
    patcher.install(tracepoint)
    patcher.install(tracepoint)
    assert tracepoint.installed
    patcher.remove(tracepoint)
    patcher.remove(tracepoint)
    assert not tracepoint.installed
    assert memory.written == [(BASE + 4, b"\x73\x00\x10\x00"), (BASE + 4, b"hijk")]


def test_a_tracepoint_made_over_an_installed_one_knows_the_programs_own_bytes(patcher):
    patcher.install(patcher.create(BASE, b"\x73\x00\x10\x00", "fbt"))
    assert patcher.create(BASE + 2, b"\x02\x90", "kinst").original == PROGRAM[2:4]


def test_the_last_one_installed_shows_until_it_goes(patcher, memory):
    first, second = patcher.create(BASE, b"\xcc", "fbt"), patcher.create(BASE, b"\xf1", "kinst")
    patcher.install(first)
    patcher.install(second)
    assert memory.data[0] == 0xF1
    patcher.remove(second)
    assert memory.data[0] == 0xCC
    patcher.remove(first)
    assert memory.data[0] == PROGRAM[0]


def test_restoring_one_owner_leaves_the_others_patches_in(patcher, memory):
    mine, other = patcher.create(BASE, b"\xcc", "fbt"), patcher.create(BASE + 1, b"\xcc", "kinst")
    patcher.install(mine)
    patcher.install(other)
    patcher.restore_all("fbt")
    assert (mine.installed, other.installed) == (False, True)
    patcher.restore_all()
    assert memory.data == PROGRAM
    patcher.install(mine)
    assert memory.data[0] == 0xCC


def test_the_listing_is_by_address(patcher):
    upper, lower = patcher.create(BASE + 8, b"\xcc", "fbt"), patcher.create(BASE, b"\xcc", "fbt")
    assert patcher.listing() == (lower, upper)


def test_a_forgotten_tracepoint_writes_nothing_more_and_cannot_come_back(patcher, memory):
    tracepoint = patcher.create(BASE, b"\xcc", "fbt")
    patcher.install(tracepoint)
    patcher.forget(tracepoint)
    patcher.remove(tracepoint)
    patcher.restore_all()
    assert memory.written == [(BASE, b"\xcc")]
    assert patcher.listing() == ()
    with pytest.raises(ValueError, match="fbt: the tracepoint at 0xffffffff80200ff0 was removed"):
        patcher.install(tracepoint)


def test_a_tracepoint_needs_code_and_a_patch(patcher):
    with pytest.raises(BadAddressError):
        patcher.create(BASE - 1, b"\xcc", "fbt")
    with pytest.raises(ValueError, match="needs patch bytes"):
        patcher.create(BASE, b"", "fbt")


def test_a_write_that_fails_leaves_the_books_as_they_were(patcher, memory):
    tracepoint = patcher.create(BASE, b"\xcc", "fbt")
    patcher.install(tracepoint)
    memory.data = bytearray()
    with pytest.raises(BadAddressError):
        patcher.remove(tracepoint)
    assert tracepoint.installed
    memory.data = bytearray(b"\xcc" + PROGRAM[1:])
    patcher.remove(tracepoint)
    assert memory.data == PROGRAM


def test_of_patches_across_a_page_that_are_written_together_the_latest_is_seen(patcher, memory):
    page = BASE + 16
    patches = [(page - 8, b"\xcc"), (page, b"\x73\x00\x10\x00"), (page - 2, b"\xa0\x81\x20\xd4")]
    tracepoints = [patcher.create(address, patch, "fbt") for address, patch in patches]
    with patcher.together():
        for tracepoint in tracepoints:
            patcher.install(tracepoint)
    assert memory.read(page - 2, 6) == b"\xa0\x81\x20\xd4\x10\x00"
    with patcher.together():
        for tracepoint in tracepoints:
            patcher.remove(tracepoint)
    assert memory.data == PROGRAM


def test_after_an_error_of_patches_written_together_the_next_one_is_written_at_once(patcher, memory):
    outside = patcher.create(BASE - 64, b"\xcc", "fbt", b"\x90")
    with pytest.raises(BadAddressError), patcher.together():
        patcher.install(outside)
    patcher.install(patcher.create(BASE, b"\xcc", "fbt"))
    assert memory.read(BASE, 1) == b"\xcc"


class Tracepoints(RuleBasedStateMachine):
    """Against a model: the installed tracepoints in the order they were installed, painted over the program."""

    tracepoints = Bundle("tracepoints")

    def __init__(self):
        super().__init__()
        self.memory = Memory()
        self.patcher = Patcher(self.memory)
        self.known = []
        self.installed = []

    @rule(
        target=tracepoints,
        place=st.integers(0, len(PROGRAM) - 4),
        patch=st.binary(min_size=1, max_size=4),
        owner=st.sampled_from(OWNERS),
    )
    def create(self, place, patch, owner):
        tracepoint = self.patcher.create(BASE + place, patch, owner)
        assert tracepoint.original == PROGRAM[place : place + len(patch)]
        self.known.append(tracepoint)
        return tracepoint

    @rule(tracepoint=tracepoints)
    def install(self, tracepoint):
        if tracepoint not in self.known:
            return
        self.patcher.install(tracepoint)
        if tracepoint not in self.installed:
            self.installed.append(tracepoint)

    @rule(tracepoint=tracepoints)
    def remove(self, tracepoint):
        self.patcher.remove(tracepoint)
        if tracepoint in self.installed:
            self.installed.remove(tracepoint)

    @rule(tracepoint=tracepoints)
    def remove_and_forget(self, tracepoint):
        self.remove(tracepoint)
        self.patcher.forget(tracepoint)
        if tracepoint in self.known:
            self.known.remove(tracepoint)

    @rule(changes=st.lists(st.tuples(tracepoints, st.sampled_from(("install", "remove", "remove_and_forget")))))
    def together(self, changes):
        self.memory.written.clear()
        with self.patcher.together():
            for tracepoint, change in changes:
                getattr(self, change)(tracepoint)
            assert not self.memory.written
        assert len(self.memory.written) <= 2  # pages

    @rule(owner=st.sampled_from((None, *OWNERS)))
    def restore_all(self, owner):
        self.patcher.restore_all(owner)
        self.installed = [each for each in self.installed if owner not in (None, each.owner)]

    @invariant()
    def memory_shows_the_latest_of_each_byte(self):
        expected = bytearray(PROGRAM)
        for tracepoint in self.installed:
            place = tracepoint.address - BASE
            expected[place : place + len(tracepoint.patch)] = tracepoint.patch
        assert self.memory.data == expected

    @invariant()
    def the_original_is_always_the_program(self):
        assert self.patcher.original(BASE, len(PROGRAM)) == PROGRAM

    @invariant()
    def the_books_are_right(self):
        assert list(self.patcher.listing()) == sorted(self.known, key=lambda each: each.address)
        assert {each for each in self.known if each.installed} == set(self.installed)


TestTracepoints = Tracepoints.TestCase
TestTracepoints.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)
