"""The arguments of the named providers, and who finds them."""

from types import SimpleNamespace

from emu.bad_address import BadAddressError
from providers.linux_kernel.events import EVENTS, Constant, Pointee, value_of


def guest(words):
    """A guest with some words of memory; the member `name` is 8 bytes from the start."""

    def load(address, size):
        assert size == 8
        if address not in words:
            raise BadAddressError(address)
        return words[address]

    btf = SimpleNamespace(offset=lambda structure, member: {("one", "name"): 8}[structure, member])
    return SimpleNamespace(engine=SimpleNamespace(load=load), facts=SimpleNamespace(btf=btf))


def test_values_have_four_forms():
    here = guest({0x1008: 77})
    assert value_of(1, here, (5, 6)) == 6
    assert value_of(Constant(9), here, (5, 6)) == 9
    assert value_of(Pointee(0, "one", "name"), here, (0x1000, 6)) == 77
    assert value_of(Pointee(1, "one", "name"), here, (0x1000, 6)) == 0  # no memory is mapped there
    assert value_of(lambda _guest, passed: sum(passed), here, (5, 6)) == 11


def test_only_these_probes_need_python_at_every_hit():
    needed = {
        f"{event.provider}:::{event.name}"
        for event in EVENTS
        if event.holds or event.of_entry or any(callable(shown.value) for shown in event.shown)
    }
    assert needed == {
        *(f"proc:::{name}" for name in ("create", "exec-failure", "exit", "start")),
        *(f"proc:::signal-{name}" for name in ("send", "discard", "clear")),
        *(f"sched:::{name}" for name in ("sleep", "preempt", "tick", "surrender")),
        *(f"io:::{name}" for name in ("done", "wait-start", "wait-done")),
    }
