"""Requests of /dev/dtrace/dtrace: their codes, their structures, their errors, and what they give."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.base import (
    FREEBSD_KERNEL_ATTRIBUTES,
    ArgumentDescription,
    Privilege,
)
from tests.trapline.d.support import compile_text
from tests.trapline.framework.support import Bench
from trapline.consumer.client import Client
from trapline.dof import decode, encode
from trapline.framework.base.device import AggregationDescription, DeviceError, EnabledProbe, RecordDescription, Status
from trapline.framework.base.program import ActionKind, ProbeDescription
from trapline.framework.device import structures
from trapline.framework.device.structures import Request

# Number and size of what the command carries, as FreeBSD's <sys/dtrace.h> has them.
SIZES = {
    Request.PROVIDER: (1, 96),
    Request.PROBES: (2, 388),
    Request.BUFSNAP: (4, 8),
    Request.PROBEMATCH: (5, 388),
    Request.ENABLE: (6, 16),
    Request.AGGSNAP: (7, 8),
    Request.EPROBE: (8, 56),
    Request.PROBEARG: (9, 268),
    Request.CONF: (10, 48),
    Request.STATUS: (11, 88),
    Request.GO: (12, 4),
    Request.STOP: (13, 4),
    Request.AGGDESC: (15, 8),
    Request.FORMAT: (16, 16),
    Request.DOFGET: (17, 8),
    Request.REPLICATE: (18, 776),
}


def test_every_request_is_there_but_those_that_never_were():
    assert {number for number, _size in SIZES.values()} == set(range(1, 19)) - {3, 14}
    assert set(SIZES) == set(Request)


@pytest.mark.parametrize("request_", list(Request), ids=lambda one: one.name)
def test_a_code_holds_its_number_and_the_size_of_its_structure(request_):
    number, size = SIZES[request_]
    assert request_.code & 0xFF == number
    assert request_.code >> 8 & 0xFF == ord("x")
    assert request_.code >> 16 & 0x1FFF == size
    assert request_.is_indirect == (size == 8)
    if not request_.is_indirect:
        assert request_.size == size


@pytest.mark.parametrize(
    ("structure", "size"),
    [
        (structures.RECORD, 32),
        (structures.ENABLED, 24),
        (structures.AGGREGATION, 40),
        (structures.BUFFER, 48),
        (structures.STATUS, 88),
        (structures.FORMAT, 16),
    ],
)
def test_structures_have_freebsds_sizes(structure, size):
    assert structure.size == size
    assert structure.format.startswith("<")


NUMBERS = st.integers(0, (1 << 32) - 1)
WORDS = st.integers(0, (1 << 64) - 1)
TEXTS = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=63)
RECORDS = st.lists(
    st.builds(
        RecordDescription,
        st.sampled_from(ActionKind),
        NUMBERS,
        NUMBERS,
        st.sampled_from([1, 2, 4, 8]),
        st.integers(0, 0xFFFF),
        WORDS,
        WORDS,
    ),
    max_size=20,
).map(tuple)


@given(st.builds(ProbeDescription, TEXTS, TEXTS, TEXTS, TEXTS), NUMBERS)
def test_a_probe_comes_back_as_it_was_packed(probe, number):
    assert structures.unpack_probe(structures.pack_probe(probe, number)) == (number, probe)


@given(
    NUMBERS, st.one_of(st.none(), st.builds(ArgumentDescription, st.integers(0, 31), TEXTS, TEXTS, st.integers(0, 31)))
)
def test_an_argument_comes_back_as_it_was_packed(probe, argument):
    index = structures.NO_ARGUMENT if argument is None else argument.index
    assert structures.unpack_argument(structures.pack_argument(probe, index, argument)) == (probe, argument)


@given(st.builds(EnabledProbe, NUMBERS, NUMBERS, NUMBERS, RECORDS))
def test_an_enabled_probe_comes_back_as_it_was_packed(enabled):
    assert structures.unpack_enabled(structures.pack_enabled(enabled, 99)) == enabled


@given(st.builds(AggregationDescription, NUMBERS, st.integers(0, 1 << 31), NUMBERS, NUMBERS, RECORDS))
def test_an_aggregation_comes_back_as_it_was_packed(aggregation):
    assert structures.unpack_aggregation(structures.pack_aggregation(aggregation, 99)) == aggregation


@given(st.builds(Status, *[WORDS] * 10, killed=st.booleans(), exiting=st.booleans()))
def test_the_counters_come_back_as_they_were_packed(status):
    assert structures.unpack_status(structures.pack_status(status)) == status


def test_a_providers_attributes_come_back_as_they_were_packed():
    packed = structures.pack_provider("fbt", FREEBSD_KERNEL_ATTRIBUTES, Privilege.KERNEL)
    assert structures.provider_name(packed) == "fbt"
    assert structures.unpack_provider(packed) == FREEBSD_KERNEL_ATTRIBUTES
    assert packed[80:84] == (1).to_bytes(4, "little")


PROGRAM = """
f:entry { trace(arg0); printf("%s: a rather long format %d", execname, arg1); stack(3); @a[execname, arg0] = count(); }
f:entry { @b = quantize(arg0); @c[arg1] = avg(arg0); }
"""


def test_a_client_sees_what_there_is():
    """Everything the consumer asks is answered through bytes as it is directly."""
    bench = Bench(PROGRAM)
    client, state = Client(bench.device), bench.device
    assert client.configuration[:4] == (2, 8, 8, 2)
    assert list(client.probes()) == list(state.probes())
    for pattern in (ProbeDescription(function="f"), ProbeDescription("test", "mod"), ProbeDescription(name="en*")):
        assert list(client.probes(pattern)) == list(state.probes(pattern)) != []
        assert client.has(pattern)
    assert not client.has(ProbeDescription("nosuch"))
    assert list(client.probes(ProbeDescription(id=bench.g))) == list(state.probes(ProbeDescription(id=bench.g)))
    assert list(client.probes(ProbeDescription(id=9999))) == []
    for index in (0, 4, 5):
        assert client.probe_argument(bench.f, index) == state.probe_argument(bench.f, index)
    for epid in (1, 2):
        assert client.enabled_probe(epid) == state.enabled_probe(epid)
    for number in (1, 2, 3):
        assert client.aggregation(number) == state.aggregation(number)
    assert client.in_force()["strsize"] == 256
    formats = {record.format for record in client.enabled_probe(1).records} - {0}
    assert [client.format(number) for number in formats] == [state.format(number) for number in formats]


def test_snapshots_come_whole():
    """Of two devices that have seen the same, one is read through requests."""
    seen = []
    for through in (lambda state: state, Client):
        bench = Bench(PROGRAM)
        for value in (1, 5, 5, 9000):
            bench.fire(bench.f, value, value & 1)
        device = through(bench.device)
        principal, aggregated = device.buffer_snapshot(0), device.aggregation_snapshot(0)
        # The first word of BEGIN's arguments is an address of the consumer; no record here holds it.
        seen.append((principal.data, principal.drops, aggregated.entries, aggregated.drops, device.status()))
        bench.device.close()
    assert seen[0] == seen[1]
    assert seen[0][2]


def errno_of(state, request, buffer):
    return state.ioctl(request.code, buffer).errno


def test_errors_are_those_of_the_kernel():
    bench = Bench()
    state = bench.device
    dof = encode(compile_text("f:entry { trace(1); }", probes=state.probes))
    assert state.ioctl(0xC0607803, bytes(96)).errno == errno.ENOTTY
    for request in Request:
        if request.size:
            assert errno_of(state, request, bytes(request.size - 1)) == errno.EFAULT
    assert errno_of(state, Request.PROVIDER, b"nosuch".ljust(96, b"\0")) == errno.ESRCH
    assert errno_of(state, Request.PROBES, structures.pack_probe(ProbeDescription(), 99999)) == errno.ESRCH
    assert errno_of(state, Request.PROBEARG, structures.pack_argument(99999, 0, None)) == errno.EINVAL
    assert errno_of(state, Request.EPROBE, structures.ENABLED.pack(9, 0, 0, 0, 1) + bytes(32)) == errno.EINVAL
    assert errno_of(state, Request.FORMAT, structures.FORMAT.pack(0, 0, 9)) == errno.EINVAL
    assert errno_of(state, Request.STOP, bytes(4)) == errno.EINVAL
    assert errno_of(state, Request.ENABLE, bytes(16) + b"no DOF") == errno.EINVAL
    assert state.ioctl(Request.ENABLE.code, bytes(16) + b"no DOF").complaint
    assert errno_of(state, Request.ENABLE, bytes(16) + dof) == 0
    assert errno_of(state, Request.GO, bytes(4)) == 0
    assert errno_of(state, Request.GO, bytes(4)) == errno.EBUSY
    assert errno_of(state, Request.ENABLE, bytes(16) + dof) == errno.EBUSY
    assert errno_of(state, Request.BUFSNAP, structures.BUFFER.pack(0, 7, 0, 0, 0, 0, 0)) == errno.ENOENT


def test_an_error_reaches_the_consumer_by_its_name_and_with_the_kernels_complaint():
    with pytest.raises(DeviceError) as caught:
        Client(Bench().device).enable(b"no DOF")
    assert caught.value.errno_name == "EINVAL"
    assert str(caught.value)


def test_a_format_comes_when_there_is_room_for_it():
    state = Bench(PROGRAM).device
    state.enabled_probe(1)
    text = state.format(1)
    short = state.ioctl(Request.FORMAT.code, structures.FORMAT.pack(0, 3, 1)).data
    assert structures.FORMAT.unpack(short) == (0, len(text) + 1, 1)
    whole = state.ioctl(Request.FORMAT.code, structures.FORMAT.pack(0, 99, 1)).data
    assert whole[16:] == text.encode() + b"\0"


def test_a_description_gives_no_more_records_than_there_is_room_for():
    state = Bench(PROGRAM).device
    data = state.ioctl(Request.EPROBE.code, structures.ENABLED.pack(1, 0, 0, 0, 1) + bytes(32)).data
    assert len(data) == 56
    assert structures.ENABLED.unpack_from(data)[-1] == len(state.enabled_probe(1).records) > 1


def test_the_options_in_force_are_dof():
    state = Bench(strsize=64).device
    dof = state.ioctl(Request.DOFGET.code, b"").data
    assert dict(decode(dof).options)["strsize"] == 64


def test_an_enabling_is_replicated_for_another_description():
    bench = Bench()
    state = bench.device
    state.enable(encode(compile_text("f:entry { trace(arg0); }", probes=state.probes)))
    match = ProbeDescription("", "", "f", "entry")
    pair = structures.pack_probe(match, 0) + structures.pack_probe(ProbeDescription("", "", "g", "entry"), 0)
    assert state.ioctl(Request.REPLICATE.code, pair).errno == 0
    state.go()
    bench.fire(bench.g, 5)
    assert [number for _epid, _time, data in bench.records() for number in struct.unpack_from("<q", data, 4)] == [5]
