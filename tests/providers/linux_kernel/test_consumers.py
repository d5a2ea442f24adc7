"""Consumers of uprobes, in a kernel of which there is only memory and a log of calls."""

import struct

import pytest

from emu.guest.linux_kernel.kernel_calls import KEY
from providers.fasttrap import Fasttrap
from providers.linux_kernel.consumers import EVERYWHERE, SIZE, Consumers, FileOffset, RefusedError
from providers.linux_kernel.uprobes import KernelUprobes

CHUNK, UPROBE = 0x10000, 0x99000
HANDLER, EQUAL = 0x500, 0x600
MEMBERS = {"handler": 0, "filter": 16}


class Kernel:
    """A guest, its BTF and its symbols, and calls of its functions."""

    callback, equal = HANDLER, EQUAL

    def __init__(self):
        self.facts = self.btf = self.isa = self
        self.symbols = {"vmalloc": 1}
        self.memory = {}
        self.log = []
        self.answer = UPROBE

    def offset(self, _name, member):
        return MEMBERS[member]

    def struct_size(self, _name):
        return 40

    def is_kernel_address(self, _address):
        return True

    def store(self, address, data):
        for place in range(0, len(data), 8):
            self.memory[address + place] = struct.unpack_from("<Q", data, place)[0]

    def call(self, name, *arguments):
        self.log.append((name, *arguments))
        return CHUNK if name == "vmalloc" else self.answer


@pytest.fixture
def kernel():
    return Kernel()


def test_a_consumer_is_registered_once_with_its_filter_and_unregistered(kernel):
    consumers = Consumers(kernel, kernel)
    one = consumers.register(FileOffset(0x7000, 0x8000, 0x40), 0x10)
    assert consumers.register(FileOffset(0x7000, 0x8000, 0x40)) is one
    assert kernel.log == [("vmalloc", 1 << 16), ("uprobe_register", 0x8000, 0x40, 0x10, CHUNK)]
    assert [kernel.memory[CHUNK + place] for place in (0, 16, KEY)] == [HANDLER, EQUAL, 0x7000]
    assert consumers.of(CHUNK) is one
    consumers.unregister(one)
    assert kernel.log[-1] == ("uprobe_unregister_nosync", UPROBE, CHUNK)
    assert (len(consumers), consumers.of(CHUNK)) == (0, None)
    again = consumers.register(FileOffset(0x7000, 0x8000, 0x40))
    assert again.address == CHUNK + SIZE  # the kernel may still read the first


def test_a_consumer_for_all_has_no_filter(kernel):
    Consumers(kernel, kernel).register(FileOffset(EVERYWHERE, 0x8000, 0x40))
    assert kernel.memory[CHUNK + 16] == 0


def test_the_filter_of_an_abandoned_consumer_accepts_nothing(kernel):
    consumers = Consumers(kernel, kernel)
    one = consumers.register(FileOffset(0x7000, 0x8000, 0x40))
    consumers.abandon(one)
    assert kernel.memory[CHUNK + KEY] == 1
    assert len(consumers) == 0
    assert [name for name, *_ in kernel.log] == ["vmalloc", "uprobe_register"]


def test_a_refusal_leaves_nothing(kernel):
    consumers = Consumers(kernel, kernel)
    kernel.answer = (1 << 64) - 22
    with pytest.raises(RefusedError) as refused:
        consumers.register(FileOffset(0x7000, 0x8000, 0x40))
    assert refused.value.number == 22
    assert len(consumers) == 0


def test_the_kernel_installs_and_removes_the_points_of_programs():
    """What enables a probe calls these two; their own versions would write breakpoints into files."""
    for name in ("install_point", "remove_point"):
        assert vars(KernelUprobes)[name] is not vars(Fasttrap)[name]
