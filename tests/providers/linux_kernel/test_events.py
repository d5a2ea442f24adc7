"""The arguments of the named providers, and who finds them."""

from types import SimpleNamespace

import pytest

from emu.support.words import WORD_MASK, BadAddressError
from providers.linux_kernel.events import (
    EVENTS,
    AsInt,
    Choice,
    Constant,
    Current,
    Field,
    Masked,
    Negated,
    Same,
    Within,
    is_clear,
    is_set,
    value_of,
)


def guest(words):
    """A guest with some words of memory; the member `name` is 8 bytes from the start."""

    def load(address, size):
        if address not in words:
            raise BadAddressError(address)
        return words[address] & (1 << 8 * size) - 1

    btf = SimpleNamespace(offset=lambda structure, member: {("one", "name"): 8}[structure, member])
    tasks = SimpleNamespace(current=lambda: 0xFFFF_0000)
    isa = SimpleNamespace(address_mask=WORD_MASK)
    return SimpleNamespace(isa=isa, engine=SimpleNamespace(load=load), facts=SimpleNamespace(btf=btf), tasks=tasks)


VALUES = [
    (1, 0x1_0000_0006),
    (Constant(9), 9),
    (Current(), 0xFFFF_0000),
    (Field(0, "one", "name"), 0x7700_0000_0002),
    (Field(0, "one", "name", 4), 2),
    (Field(Field(0, "one", "name"), "one", "name"), 0),  # no memory is mapped there
    (AsInt(1), 6),
    (AsInt(Constant(0x1_FFFF_FFFE)), WORD_MASK - 1),
    (Masked(1, 0xFF), 6),
    (Negated(AsInt(Constant(0xFFFF_FFF3))), 13),
    (Within(AsInt(Constant(0xFFFF_FFF3)), -4095, -1), 1),
    (Within(Constant(0), -4095, -1), 0),
    (Within(Constant(128), 1, 127), 0),
    (Within(Constant(127), 1, 127), 1),
    (Same(AsInt(1), Constant(6)), 1),
    (Same(1, Constant(6)), 0),
    (is_set(1), 1),
    (is_clear(1), 0),
    (Choice(is_set(1), Constant(1), Constant(2)), 1),
    (Choice(is_clear(1), Constant(1), Constant(2)), 2),
]


@pytest.mark.parametrize(("value", "expected"), VALUES)
def test_values_are_words(value, expected):
    assert value_of(value, guest({0x1008: 0x7700_0000_0002}), (0x1000, 0x1_0000_0006)) == expected


def test_only_one_probe_needs_python_at_every_hit():
    assert [f"{event.provider}:::{event.name}" for event in EVENTS if event.of_entry] == ["io:::wait-done"]
