"""DOF of programs: what the guest's start-up object makes is understood, and whatever is broken is refused in words."""

from __future__ import annotations

import struct
from contextlib import suppress
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.guest.processes import ProcessObserver
from emu.isa import ISAS
from providers.dof.layout import HEADER, LOAD, RELOCATION, RELOCATIONS, SECTION, SectionType
from providers.dof.probes import helper_probes
from providers.dof.sections import DofError, load_size
from providers.fasttrap import PORTS
from providers.fasttrap.pid_provider import PidProvider
from providers.fasttrap.records import Probe, ProbeType
from trapline.machine.kernel_machine import KernelOptions, kernel_guest


@cache
def told(isa):
    """Return the DOF that the guest's `query` tells, and where it has it."""
    guest = kernel_guest(KernelOptions(isa=ISAS[isa], command="query 1"))
    found = []

    class Listener(ProcessObserver):
        def helper_added(self, process, module, load_address, dof, generation):
            code = guest.userland.code(process)
            found.append((code.read(dof, load_size(code.read(dof, HEADER.size))), load_address, dof))

    guest.userland.watch(Listener())
    guest.boot()
    guest.run(None)
    return found[0]


@pytest.mark.parametrize("isa", ISAS)
def test_the_probes_of_a_program_are_read_from_its_dof(isa):
    probes = {probe.name: probe for probe in helper_probes(*told(isa))}
    assert sorted(probes) == ["query-done", "query-plan", "query-start"]
    start, plan = probes["query-start"], probes["query-plan"]
    assert (start.provider, start.function, start.types) == ("myprov", "query", ("char *", "int"))
    assert len(start.sites) == 1
    assert not start.questions
    assert start.address < start.sites[0] < start.address + 256
    assert plan.function == "answer"
    assert len(plan.questions) == 1
    assert plan.questions[0] < plan.sites[0]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_broken_dof_is_refused_and_nothing_else_happens(data):
    dof, load_address, place = told("x86_64")
    broken = bytearray(dof[:1100])
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, 600))] = data.draw(st.integers(0, 255))
    with suppress(DofError):  # and no other error
        helper_probes(bytes(broken).ljust(len(dof), b"\0"), load_address, place)


def test_what_is_not_dof_is_refused():
    with pytest.raises(DofError, match="magic"):
        load_size(bytes(HEADER.size))


@pytest.mark.parametrize(("isa", "model"), [("x86_64", 2), ("i386", 1)])
def test_dof_is_of_the_programs_data_model_and_no_other_is_taken(isa, model):
    dof, _load_address, _place = told(isa)
    assert dof[4] == model
    assert load_size(dof[: HEADER.size]) == len(dof)
    with pytest.raises(DofError, match="data model"):
        helper_probes(dof[:4] + b"\3" + dof[5:], 0, 0)


def header(dof, **changed):
    """Return DOF with fields of its header changed."""
    names = ("ident", "flags", "hdrsize", "secsize", "secnum", "secoff", "loadsz", "filesz", "pad")
    fields = dict(zip(names, HEADER.unpack_from(dof), strict=True)) | changed
    return HEADER.pack(*fields.values()) + dof[HEADER.size :]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"secsize": 0, "secnum": 0xFFFF_FFFF}, "zero section header size"),
        ({"secnum": 0xFFFF_FFFF}, "beyond the end"),
        ({"secsize": 0xFFFF_FFF8, "secnum": 0xFFFF_FFFF}, "beyond the end"),
        ({"secoff": (1 << 64) - 8}, "beyond the end"),
        ({"secsize": 8}, "too short"),
        ({"flags": 1}, "invalid DOF flags"),
        ({"loadsz": 1 << 40}, "exceeds the maximum"),
        ({"loadsz": 8}, "not that of the data"),
    ],
)
def test_a_damaged_header_is_refused_at_once(changed, why):
    dof, load_address, place = told("x86_64")
    with pytest.raises(DofError, match=why):
        helper_probes(header(dof, **changed), load_address, place)


@pytest.mark.parametrize(("kind", "entry"), [(16, 0), (16, 8), (16, 52), (10, 0), (10, 8)])
def test_entries_of_no_size_are_refused(kind, entry):
    dof, load_address, place = told("x86_64")
    data = bytearray(relocated(dof, place, 1, lambda address, _field: address))
    _ident, _flags, _hdrsize, secsize, secnum, secoff, *_ = HEADER.unpack_from(data)
    for at in range(secoff, secoff + secsize * secnum, secsize):
        if SECTION.unpack_from(data, at)[0] == kind:
            struct.pack_into("<I", data, at + 12, entry)
    with pytest.raises(DofError, match=r"wrong size|invalid relocations"):
        helper_probes(bytes(data), load_address, place)


def relocated(dof, place, kind, value):
    """Return DOF with relocations; `value(address, field's own address)` is what the linker has left in a field."""
    data, header = bytearray(dof), list(struct.unpack_from("<16sIIIIQQQQ", dof))
    sections = [list(struct.unpack_from("<IIIIQQ", dof, header[5] + at * header[3])) for at in range(header[4])]
    probes = next(index for index, section in enumerate(sections) if section[0] == 16)
    _kind, _align, _flags, entry, offset, size = sections[probes]
    table = b""
    for at in range(0, size, entry):
        (address,) = struct.unpack_from("<Q", data, offset + at)
        struct.pack_into("<Q", data, offset + at, value(address, place + offset + at))
        table += struct.pack("<IIQQ", 0, kind, at, 0)
    data += bytes(-len(data) % 8)
    sections.append([10, 8, 1, 24, len(data), len(table)])
    sections.append([12, 4, 1, 0, len(data) + len(table), 12])
    data += table + struct.pack("<III", 0, len(sections) - 2, probes)
    data += bytes(-len(data) % 8)
    header[4:6] = len(sections), len(data)
    data += b"".join(struct.pack("<IIIIQQ", *section) for section in sections)
    header[6] = header[7] = len(data)
    struct.pack_into("<16sIIIIQQQQ", data, 0, *header)
    return bytes(data)


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_addresses_are_relocated_as_either_linker_leaves_them(isa):
    dof, _load_address, place = told(isa)
    wanted = helper_probes(dof, 0, place)
    mask = (1 << 8 * ISAS[isa].word) - 1  # R_386_PC32 fills half of the field
    relative = relocated(dof, place, 2, lambda address, field: address - field & mask)
    assert helper_probes(relative, 0, place) == wanted
    absolute = relocated(dof, place, 1, lambda address, _field: address - 0x1000 & mask)
    assert helper_probes(absolute, 0x1000, place) == wanted


@pytest.mark.parametrize("isa", ISAS)
def test_late_arguments_of_a_told_probe_are_on_the_stack_without_a_return_address(isa):
    port = PORTS[isa]
    kernel = SimpleNamespace(frame=SimpleNamespace(stack_word=lambda place: place))
    provider = PidProvider("myprov", SimpleNamespace(kernel=kernel, port=port))
    first = max(5, len(port.arguments + port.late_arguments))
    places = [
        provider.argument_value(1, Probe(None, ProbeType.OFFSETS, 0, 0, (), types=types), first)
        for types in ((("int", "int", 0),), ())
    ]
    told = 5 if isa == "i386" else 0
    assert places == [told, told + port.stack_skip]


def made(*sections):
    """Return DOF of sections: each a type, the size of its entries, and its content."""
    table, body, start = b"", b"", HEADER.size + len(sections) * SECTION.size
    for type_, entry, content in sections:
        body += bytes(-(start + len(body)) % 8)
        alignment = 4 if type_ is SectionType.URELHDR else 8
        table += SECTION.pack(type_, alignment, LOAD, entry, start + len(body), len(content))
        body += content
    size = start + len(body)
    ident = b"\x7fDOF" + bytes([2, 1, 2, 2, 8, 8]) + bytes(6)
    return HEADER.pack(ident, 0, HEADER.size, SECTION.size, len(sections), HEADER.size, size, size, 0) + table + body


def of_providers(probes, offsets, providers, relocations=0, headers=0):
    """Return DOF whose providers all have the same probes, and those the same places."""
    probe = struct.pack("<QIIIIIIBBHIHHI", 0x1000, 1, 1, 1, 1, 0, 0, 0, 0, offsets, 0, 0, 0, 0)
    return made(
        (SectionType.STRTAB, 1, b"\0ab\0"),
        (SectionType.PROBES, len(probe), probe * probes),
        (SectionType.PRARGS, 1, b"\0"),
        (SectionType.PROFFS, 4, bytes(4 * offsets)),
        (SectionType.RELTAB, RELOCATION.size, RELOCATION.pack(0, 1, 0, 0) * relocations),
        *[(SectionType.URELHDR, 1, RELOCATIONS.pack(0, 4, 1))] * headers,
        *[(SectionType.PROVIDER, 44, struct.pack("<10I", 0, 1, 2, 3, 1, *bytes(5)))] * providers,
    )


def test_sections_that_are_named_again_and_again_are_bounded():
    assert len(helper_probes(of_providers(3, 5, 2, relocations=2, headers=2), 0, 0)) == 6
    for many in (of_providers(2000, 30_000, 1), of_providers(1000, 10, 2000), of_providers(1, 1, 1, 5000, 1500)):
        assert len(many) < 256 * 1024
        with pytest.raises(DofError, match="more than 250,000") as refused:
            helper_probes(many, 0, 0)
        assert refused.value.errno_name == "E2BIG"
