"""The address space of a process tells the CPU of each change that takes a right away."""

import random

import pytest

from emu.engine.memory.access import Access
from emu.engine.memory.pages import PAGE
from emu.guest.linux.mm.address_space import Area, Space
from emu.guest.linux.mm.page_frames import Frames

START = 16 * PAGE


def _frames(number):
    return Frames(memoryview(bytearray(number * PAGE)), memoryview(bytearray(number)), lambda _physical, _size: None)


class Told(Space):
    """An address space that notes what it tells."""

    def __init__(self, access):
        super().__init__(_frames(16), PAGE, 1 << 30)
        self.forgotten, self.forbidden = [], set()
        self.map(Area(START, START + 2 * PAGE, access))
        for number in range(2):
            wanted = next(right for right in (Access.WRITE, Access.READ, Access.EXECUTE) if right in access)
            assert self.look_up(START + number * PAGE, wanted) is not None
        self.flush_page = self.forgotten.append
        self.forbid_writing = self.forbidden.update


@pytest.mark.parametrize("access", [Access.READ, Access.EXECUTE, Access.READ | Access.WRITE, Access.WRITE], ids=str)
def test_a_page_that_loses_rights_is_forgotten(access):
    space = Told(access)
    assert space.protect(START + PAGE, START + 2 * PAGE, Access(0))
    assert space.forgotten == [START + PAGE]
    assert space.look_up(START + PAGE, access) is None


def test_a_page_that_is_unmapped_is_forgotten():
    space = Told(Access.EXECUTE)
    space.unmap(START, START + PAGE)
    assert space.forgotten == [START]


def test_a_page_that_moves_is_forgotten_where_it_was():
    space = Told(Access.READ)
    space.move(START, START + PAGE, START + 8 * PAGE)
    assert space.forgotten == [START]


def test_after_a_fork_no_private_page_can_be_written_as_it_is():
    space = Told(Access.READ | Access.WRITE)
    child = space.fork()
    assert space.forbidden == {START // PAGE, START // PAGE + 1}
    for side in (space, child):
        assert side.look_up(START, Access.READ)[1] == Access.READ
    before = space.look_up(START, Access.READ)[0]
    assert child.look_up(START, Access.WRITE)[0] != before, "the child writes a copy"
    assert space.look_up(START, Access.WRITE) == (before, Access.READ | Access.WRITE), "the parent is alone again"


@pytest.mark.parametrize("seed", range(8))
def test_room_size_and_areas_are_those_of_a_map_of_pages(seed):
    chosen = random.Random(seed)  # noqa: S311  a test
    lowest, highest = 4, 132
    space = Space(_frames(1), lowest * PAGE, highest * PAGE)
    mapped = set()
    for _ in range(300):
        size = chosen.choice((1, 1, 2, 3, 8, 30))
        start = chosen.randrange(lowest, highest - size)
        match chosen.randrange(5):
            case 0:
                space.unmap(start * PAGE, (start + size) * PAGE)
                mapped -= set(range(start, start + size))
            case 1:
                space.map(Area(start * PAGE, (start + size) * PAGE, Access.READ))
                mapped |= set(range(start, start + size))
            case 2:
                space.protect(start * PAGE, (start + size) * PAGE, chosen.choice((Access.READ, Access.WRITE)))
            case _:
                free = [
                    page for page in range(lowest, highest - size + 1) if mapped.isdisjoint(range(page, page + size))
                ]
                start_at = space.unmapped_area(size * PAGE)
                assert start_at == (free[-1] * PAGE if free else None)
                if start_at is not None and chosen.random() < 0.7:
                    space.map(Area(start_at, start_at + size * PAGE, Access.READ))
                    mapped |= set(range(start_at // PAGE, start_at // PAGE + size))
        assert space.size == len(mapped) * PAGE
        assert {page for area in space.areas for page in range(area.start // PAGE, area.end // PAGE)} == mapped
        found = [area.start for area in space.overlapping(start * PAGE, (start + size) * PAGE)]
        assert found == [
            area.start for area in space.areas if area.start // PAGE < start + size and area.end // PAGE > start
        ]
