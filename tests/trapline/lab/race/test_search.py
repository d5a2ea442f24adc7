"""The explorer finds what each method gets wrong, and nothing where a method is right."""

from dataclasses import replace

import pytest

from emu.isa import ISAS
from tests.support.races import kind_of
from tests.support.some import some
from trapline.lab.race.methods import METHODS, scenarios
from trapline.lab.race.model import Model, Race
from trapline.lab.race.patch import RaceError
from trapline.lab.race.probe_names import find, functions, patches
from trapline.lab.race.processor import Processor
from trapline.lab.race.search import explore, replay, search

# jmp +0x100 over one nop of five bytes, and over five nops of one; x86.
ONE_NOP = "code:554889e50f1f4400005dc3:4:e900010000"
FIVE_NOPS = "code:554889e590909090905dc3:4:e900010000"
# nop; nop becomes auipc t0, 1; jalr t0, 0(t0); RISC-V.
PAIR = "code:1300000013000000828000000000:0:97120000e7820200"


def kind(isa, name, method, scenario="toggle", cpus=2, **how):
    return kind_of(search(Model(Race(find(ISAS[isa], name), method, scenario, cpus)), **how))


@pytest.fixture(scope="module", params=ISAS)
def malloc(request):
    patch = find(ISAS[request.param], "fbt::malloc:entry")
    return patch, Processor(patch)


@pytest.mark.parametrize("scenario", scenarios("fbt"))
def test_our_own_method_holds_on_every_isa(malloc, scenario):
    patch, processor = malloc
    model = Model(Race(patch, "stop-machine", scenario), processor)
    found = search(model)
    assert found.complete
    assert found.failure is None
    assert {code[: len(patch.new)] for pc, code in model.fetched if pc == patch.site} >= {patch.new}
    assert found.states > 50


def test_no_barrier_fails_on_every_isa(malloc):
    patch, processor = malloc
    assert search(Model(Race(patch, "no-barrier"), processor)).failure is not None


@pytest.mark.parametrize("scenario", ["enable", "disable"])
def test_a_handler_has_to_know_a_breakpoint_as_long_as_a_cpu_may_meet_it(malloc, scenario):
    patch, processor = malloc
    failure = search(Model(Race(patch, "entry-late", scenario), processor)).failure
    torn = patch.isa.name == "aarch64" and scenario == "enable"  # what is written over may not change there
    assert failure.kind == ("unpredictable" if torn else "unclaimed")


@pytest.mark.parametrize("method", METHODS)
def test_leaving_steps_out_that_do_not_matter_changes_no_verdict(malloc, method):
    patch, processor = malloc
    few, all_ = (search(Model(Race(patch, method), processor), reduce=reduce) for reduce in (True, False))
    assert (few.failure and few.failure.kind) == (all_.failure and all_.failure.kind)
    assert few.failure or few.states < all_.states


@pytest.mark.parametrize(
    ("method", "kinds"),
    [
        ("write-once", {"x86_64": "holds", "i386": "holds", "aarch64": "unpredictable", "riscv64": "missed"}),
        ("write-sync", {"x86_64": "holds", "i386": "holds", "aarch64": "unpredictable", "riscv64": "holds"}),
        ("new-page", dict.fromkeys(ISAS, "holds")),
    ],
)
def test_whether_one_store_suffices_depends_on_the_isa(malloc, method, kinds):
    patch, processor = malloc
    found = search(Model(Race(patch, method), processor))
    assert (found.failure.kind if found.failure else "holds") == kinds[patch.isa.name]


@pytest.mark.parametrize(
    ("name", "method", "expected"),
    [
        (ONE_NOP, "write-once", "torn"),
        (ONE_NOP, "write-sync", "torn"),
        (ONE_NOP, "int3-first", "holds"),
        (ONE_NOP, "entry-late", "unclaimed"),
        (ONE_NOP, "stop-machine", "holds"),
        # A CPU is stopped between two of the nops, and continues within the jump.
        (FIVE_NOPS, "int3-first", "torn"),
        (FIVE_NOPS, "stop-machine", "torn"),
        (FIVE_NOPS, "int3-quiesce", "holds"),
    ],
)
def test_five_bytes_of_x86(name, method, expected):
    assert kind("x86_64", name, method) == expected


def test_two_instructions_of_riscv_are_mixed_even_with_all_cpus_stopped():
    assert kind("riscv64", PAIR, "write-sync") in {"torn", "mixed"}
    assert kind("riscv64", PAIR, "stop-machine") == "mixed"
    assert kind("riscv64", PAIR, "int3-quiesce") == "holds"


def test_words_that_arm_lists_may_be_written_while_they_are_executed():
    assert kind("aarch64", "code:1f2003d5c0035fd6:0:40000014", "write-sync") == "holds"
    assert kind("aarch64", "code:fd7bbfa9c0035fd6:0:40000014", "write-sync") == "unpredictable"


def test_three_cpus_find_what_two_find():
    assert kind("x86_64", ONE_NOP, "int3-first", cpus=3) == "holds"
    assert kind("x86_64", ONE_NOP, "write-once", cpus=3) == "torn"


def test_a_record_is_freed_while_a_hart_still_fetches_the_breakpoint():
    assert kind("riscv64", "fbt::malloc:entry", "write-once", "unload") == "unclaimed"


def test_a_failure_is_replayed_by_its_line():
    explored = explore(Race(find(ISAS["riscv64"], PAIR), "stop-machine"))
    model, trace = replay(explored.line)
    assert trace == explored.found.trace
    assert trace[-1].failure == explored.found.failure
    assert model.race.method == "stop-machine"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("isa=x86_64 patch=fbt::malloc:entry method=write-once steps=P,7", "step 2, '7', is not possible"),
        ("isa=x86_64 patch=fbt::malloc:entry method=write-one steps=", "did you mean 'write-once'"),
        ("isa=x86_64 patch=fbt::malloc:entry method=write-once cpus=x steps=P", "are numbers"),
        ("nothing", "needs isa="),
    ],
)
def test_a_wrong_line_is_one_message(line, words):
    with pytest.raises(RaceError, match=words):
        replay(line)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("malloc", "provider:module:function:name"),
        ("fbt::maloc:entry", "did you mean 'malloc'"),
        ("nfs::malloc:entry", "there are"),
        ("fbt::malloc:exit", "there are entry"),
        ("code:90:4:cc", "not an instruction with room"),
        ("code:zz:0:cc", "hexadecimal"),
    ],
)
def test_a_wrong_patch_is_one_message(name, words):
    with pytest.raises(RaceError, match=words):
        find(ISAS["x86_64"], name)


@pytest.mark.parametrize("isa", ISAS)
def test_every_provider_has_places_in_the_kernel(isa):
    function = next(one for one in functions(ISAS[isa], None) if one.name == "hardclock_cnt")
    for provider in ("fbt", "pid", "sdt", "uprobe"):
        for patch in some(patches(ISAS[isa], provider, function)):
            assert patch.old != patch.new
            assert patch.site in patch.boundaries


def test_without_old_bytes_only_the_order_of_stores_and_interrupts_is_left():
    old = Race(find(ISAS["riscv64"], "fbt::malloc:entry"), "write-once")
    new = replace(old, coherent=True)
    assert search(Model(old)).failure.kind == "missed"
    assert search(Model(new)).failure is None
    torn = explore(Race(find(ISAS["x86_64"], FIVE_NOPS), "stop-machine", coherent=True))
    assert torn.found.failure.kind == "torn"
    assert replay(torn.line)[1] == torn.found.trace


def test_a_bound_leaves_the_question_open():
    found = search(Model(Race(find(ISAS["x86_64"], ONE_NOP), "int3-first")), bound=20)
    assert not found.complete
    assert found.failure is None
    assert found.waiting
