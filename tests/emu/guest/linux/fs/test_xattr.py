"""Extended attributes count as memory that files hold."""

import pytest

from emu.engine.memory.pages import PAGE
from emu.guest.linux.errno import ENOSPC, LinuxError
from emu.guest.linux.fs.page_cache import FileMemory
from emu.guest.linux.fs.xattr import ExtendedAttributes


def test_attributes_take_memory_and_give_it_back():
    memory = FileMemory(lambda: 4 * PAGE)
    attributes = ExtendedAttributes(memory)
    attributes.set("user.a", bytes(PAGE), 0)
    assert memory.pages == 2
    attributes.set("user.a", b"small", 0)
    assert memory.pages == 1
    attributes.remove("user.a")
    assert memory.pages == 0
    attributes.set("user.b", bytes(PAGE), 0)
    del attributes
    assert memory.pages == 0


def test_a_value_without_room_is_refused():
    memory = FileMemory(lambda: 4 * PAGE)
    attributes = ExtendedAttributes(memory)
    with pytest.raises(LinuxError) as error:
        attributes.set("user.a", bytes(5 * PAGE), 0)
    assert error.value.number == ENOSPC
    assert not attributes.names()
    assert memory.pages == 0
