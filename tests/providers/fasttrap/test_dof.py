"""DOF of programs: what the guest's start-up object makes is understood, and whatever is broken is refused in words."""

from __future__ import annotations

from contextlib import suppress
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu.guest.observer import Observer
from emu.isa import ISAS
from providers.fasttrap.dof import HEADER_SIZE, HelperDofError, helper_probes, loaded_size
from trapline.machine import KernelOptions, kernel_guest


@cache
def told(isa):
    """Return the DOF that the guest's `query` tells, and where it has it."""
    guest = kernel_guest(KernelOptions(isa=ISAS[isa], command="query 1"))
    found = []

    class Listener(Observer):
        def helper_added(self, process, module, load_address, dof, generation):
            code = guest.userland.code(process)
            found.append((code.read(dof, loaded_size(code.read(dof, HEADER_SIZE))), load_address, dof))

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
    with suppress(HelperDofError):  # and no other error
        helper_probes(bytes(broken).ljust(len(dof), b"\0"), load_address, place)


def test_what_is_no_dof_is_refused():
    with pytest.raises(HelperDofError, match="no DOF"):
        loaded_size(bytes(HEADER_SIZE))


@pytest.mark.parametrize(("isa", "model"), [("x86_64", 2), ("i386", 1)])
def test_dof_is_of_the_programs_data_model_and_no_other_is_taken(isa, model):
    dof, _load_address, _place = told(isa)
    assert dof[4] == model
    assert loaded_size(dof[:HEADER_SIZE]) == len(dof)
    with pytest.raises(HelperDofError, match="data model"):
        loaded_size(dof[:4] + b"\3" + dof[5:HEADER_SIZE])
