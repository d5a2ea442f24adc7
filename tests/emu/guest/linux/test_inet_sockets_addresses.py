"""The addresses of IPv4 and IPv6, and the ports of sockets."""

from dataclasses import dataclass

import pytest

from emu.guest.linux.errno import EAFNOSUPPORT, EINVAL, ENETUNREACH, LinuxError
from emu.guest.linux.net.addresses import (
    ANY4,
    ANY6,
    FORM4,
    FORM6,
    LOOPBACK4,
    LOOPBACK6,
    Endpoint,
    covers,
    is_local,
    route,
)
from emu.guest.linux.net.ports import FIRST_PORT, LAST_PORT, Ports

SECOND4 = LOOPBACK4[:-1] + b"\2"
AWAY4 = LOOPBACK4[:12] + bytes((8, 8, 8, 8))
AWAY6 = b"\x20\x01\x0d\xb8" + bytes(12)


@dataclass(eq=False)
class Holder:
    """A socket, as its ports see it."""

    local: Endpoint
    remote: Endpoint | None = None
    only_v6: bool = False
    uid: int = 0
    listening: bool = False
    shares_address: bool = False
    shares_port: bool = False


@pytest.mark.parametrize(
    ("form", "host", "packed"),
    [
        (FORM4, LOOPBACK4, "0200 0050 7f000001 0000000000000000"),
        (FORM6, LOOPBACK6, "0a00 0050 00000000 00000000000000000000000000000001 00000000"),
        (FORM6, LOOPBACK4, "0a00 0050 00000000 00000000000000000000ffff7f000001 00000000"),
    ],
)
def test_an_address_is_packed_and_read(form, host, packed):
    endpoint = Endpoint(host, 80)
    assert form.pack(endpoint) == bytes.fromhex(packed)
    assert form.read(form.pack(endpoint)) == endpoint


@pytest.mark.parametrize(
    ("form", "data", "error"),
    [
        (FORM4, bytes(15), EINVAL),
        (FORM4, b"\x0a\0" + bytes(26), EAFNOSUPPORT),
        (FORM6, b"\x0a\0" + bytes(21), EINVAL),
        (FORM6, b"\2\0" + bytes(26), EAFNOSUPPORT),
    ],
)
def test_an_address_that_is_too_short_or_of_another_family_is_refused(form, data, error):
    with pytest.raises(LinuxError) as raised:
        form.read(data)
    assert raised.value.number == error


def test_a_socket_may_be_bound_to_any_address_without_a_family():
    assert FORM4.read_to_bind(bytes(16)) == Endpoint(ANY4)
    with pytest.raises(LinuxError):
        FORM4.read_to_bind(bytes(4) + b"\x7f" + bytes(11))
    with pytest.raises(LinuxError):
        FORM6.read_to_bind(bytes(28))


@pytest.mark.parametrize(
    ("host", "reached"),
    [(ANY4, LOOPBACK4), (ANY6, LOOPBACK6), (SECOND4, SECOND4), (LOOPBACK6, LOOPBACK6), (AWAY4, None), (AWAY6, None)],
)
def test_only_the_loopback_is_reached(host, reached):
    if reached is not None:
        assert route(host) == reached
        assert is_local(reached)
        return
    assert not is_local(host)
    with pytest.raises(LinuxError) as raised:
        route(host)
    assert raised.value.number == ENETUNREACH


@pytest.mark.parametrize(
    ("host", "other", "only_v6", "covered"),
    [
        (ANY4, LOOPBACK4, False, True),
        (ANY4, LOOPBACK6, False, False),
        (ANY6, LOOPBACK4, False, True),
        (ANY6, LOOPBACK4, True, False),
        (ANY6, LOOPBACK6, True, True),
        (LOOPBACK4, LOOPBACK4, False, True),
        (LOOPBACK4, SECOND4, False, False),
        (LOOPBACK4, ANY4, False, False),
    ],
)
def test_an_address_covers_those_it_stands_for(host, other, only_v6, covered):
    assert covers(host, other, only_v6=only_v6) == covered


def test_ports_are_given_in_order_and_begin_again():
    ports = Ports()
    assert [ports.free() for _ in range(3)] == [FIRST_PORT, FIRST_PORT + 1, FIRST_PORT + 2]
    ports.add(Holder(Endpoint(LOOPBACK4, FIRST_PORT + 3)))
    assert ports.free() == FIRST_PORT + 4
    for _ in range(FIRST_PORT + 5, LAST_PORT + 1):
        last = ports.free()
    assert last == LAST_PORT
    assert ports.free() == FIRST_PORT


def test_all_ports_may_be_taken():
    ports = Ports()
    for number in range(FIRST_PORT, LAST_PORT + 1):
        ports.add(Holder(Endpoint(LOOPBACK4, number)))
    assert ports.free() == 0


@pytest.mark.parametrize(
    ("first", "second", "conflict"),
    [
        (Holder(Endpoint(ANY4, 80)), Holder(Endpoint(LOOPBACK4, 80)), True),
        (Holder(Endpoint(LOOPBACK4, 80)), Holder(Endpoint(SECOND4, 80)), False),
        (Holder(Endpoint(ANY6, 80)), Holder(Endpoint(ANY4, 80)), True),
        (Holder(Endpoint(ANY6, 80), only_v6=True), Holder(Endpoint(ANY4, 80)), False),
        (Holder(Endpoint(ANY4, 80), shares_address=True), Holder(Endpoint(ANY4, 80), shares_address=True), False),
        (
            Holder(Endpoint(ANY4, 80), shares_address=True, listening=True),
            Holder(Endpoint(ANY4, 80), shares_address=True),
            True,
        ),
        (Holder(Endpoint(ANY4, 80), shares_port=True), Holder(Endpoint(ANY4, 80), shares_port=True), False),
        (Holder(Endpoint(ANY4, 80), shares_port=True), Holder(Endpoint(ANY4, 80), shares_port=True, uid=1), True),
        (Holder(Endpoint(ANY4, 80), shares_port=True), Holder(Endpoint(ANY4, 80)), True),
    ],
)
def test_two_sockets_share_a_port_only_if_both_allow_it(first, second, conflict):
    ports = Ports()
    ports.add(first)
    assert ports.conflict(second, second.local) == conflict
    ports.remove(first)
    assert not ports.conflict(second, second.local)


def test_the_socket_whose_addresses_fit_best_receives():
    ports = Ports()
    to, source = Endpoint(LOOPBACK4, 80), Endpoint(LOOPBACK4, 40_000)
    everything, ours, exact = Holder(Endpoint(ANY6, 80)), Holder(Endpoint(ANY4, 80)), Holder(to)
    connected, foreign = Holder(to, source), Holder(to, Endpoint(LOOPBACK4, 1))
    expected = None
    for one in (foreign, everything, ours, exact, connected):
        assert ports.receiver(to, source, lambda _one: True) is expected
        ports.add(one)
        expected = expected if one is foreign else one
    assert ports.receiver(to, source, lambda _one: True) is connected
    assert ports.receiver(to, source, lambda one: one is ours) is ours


def test_sockets_that_share_a_port_receive_by_the_port_of_the_sender():
    ports = Ports()
    both = [Holder(Endpoint(ANY4, 80), shares_port=True) for _ in range(2)]
    for one in both:
        ports.add(one)
    to = Endpoint(LOOPBACK4, 80)
    found = [ports.receiver(to, Endpoint(LOOPBACK4, port), lambda _one: True) for port in (1000, 1001, 1002)]
    assert found == [both[0], both[1], both[0]]
