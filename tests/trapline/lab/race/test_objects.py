"""The user's compiled patcher: its stores, barriers and calls are what is explored."""

import pytest

from emu.assembly import machine_code
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from emu.isa.fetch import Effect
from tests.support.races import kind_of
from trapline.lab.race.model import Race
from trapline.lab.race.objects.method import glue_of, own_method
from trapline.lab.race.objects.recorder import operations
from trapline.lab.race.operations import Flush, Store, Wait
from trapline.lab.race.patch import NoPortError, RaceError
from trapline.lab.race.probe_names import find
from trapline.lab.race.search import explore, replay

EVERY_ISA = pytest.mark.parametrize("isa", ISAS)
# Two instructions become two others.
PAIRS = {
    "aarch64": "code:1f2003d51f2003d5c0035fd6:0:e9031eaa40000094",
    "riscv64": "code:1300000013000000828000000000:0:97120000e7820200",
}


def explored(isa, file, patch="", glue="text-poke", entry="", scenario="toggle"):
    found = find(ISAS[isa], patch or glue_of(glue).usual_patch(ISAS[isa]))
    own = own_method(found, file, glue, entry)
    return explore(Race(found, own.name, scenario, own=own))


def kind(*words, **options):
    return kind_of(explored(*words, **options).found)


@EVERY_ISA
def test_the_right_patcher_holds_and_each_mistake_is_found(isa):
    x86 = isa in {"x86_64", "i386"}
    assert kind(isa, "testbins:poke.o") == "holds"
    assert kind(isa, "testbins:poke-nosync.o") == ("torn" if x86 else "missed")
    assert kind(isa, "testbins:poke-early.o") == ("torn" if x86 else "missed")
    wide = {"aarch64": "unpredictable", "riscv64": "mixed"}
    assert kind(isa, "testbins:poke-wide.o", PAIRS.get(isa, "")) == wide.get(isa, "torn")
    assert kind(isa, "testbins:poke-body.o", PAIRS.get(isa, "")) == ("torn" if x86 else "mixed")


@pytest.mark.parametrize("isa", PAIRS)
def test_a_cpu_may_be_stopped_between_two_instructions(isa):
    assert kind(isa, "testbins:poke.o", PAIRS[isa]) == "mixed"


@EVERY_ISA
def test_fbt_from_the_object_does_what_its_method_does(isa):
    # This one writes byte by byte.
    kinds = {"aarch64": "unpredictable", "riscv64": "torn"}
    assert kind(isa, "testbins:scanner.o", glue="fbt") == kinds.get(isa, "holds")


def test_the_operations_are_those_of_the_code():
    patch = find(ISAS["aarch64"], glue_of("text-poke").usual_patch(ISAS["aarch64"]))
    write = own_method(patch, "testbins:poke.o").method.write
    assert [type(one).__name__ for one in write(patch, patch.site, patch.new)] == (
        "Stop Store Wait Flush FetchAnew FetchStopped Release".split()
    )
    x86 = find(ISAS["x86_64"], glue_of("text-poke").usual_patch(ISAS["x86_64"]))
    kinds = [type(one).__name__ for one in own_method(x86, "testbins:poke.o").method.write(x86, x86.site, x86.new)]
    # on_each_cpu, then this CPU's own cpuid.
    assert kinds[:5] == ["Divert", "Store", "Interrupt", "Wait", "FetchAnew"]
    write = own_method(patch, "testbins:poke-early.o").method.write
    assert "Flush" not in [type(one).__name__ for one in write(patch, patch.site, patch.new)]


def test_a_failure_is_replayed_by_its_line():
    failed = explored("riscv64", "testbins:poke-nosync.o", entry="patch_text_nosync")
    model, trace = replay(failed.line)
    assert trace == failed.found.trace
    assert trace[-1].failure == failed.found.failure
    assert model.race.own.words == "object=testbins:poke-nosync.o glue=text-poke entry=patch_text_nosync"


def test_a_glue_of_the_users_own(tmp_path):
    glue = tmp_path / "my glue.py"
    glue.write_text(
        "from trapline.lab.race.objects.text_poke import TextPokeGlue\n"
        "class Mine(TextPokeGlue):\n"
        "    def on_each_cpu(self, function, argument, wait):\n"
        "        self.text_poke_sync()\n"
        "    on_each_cpu.c_prototype = TextPokeGlue.on_each_cpu.c_prototype\n"
    )
    failed = explored("x86_64", "testbins:poke-wide.o", glue=f"{glue}:Mine")
    assert failed.found.failure.kind == "torn"
    assert replay(failed.line)[1] == failed.found.trace


@pytest.mark.parametrize(
    ("file", "options", "words"),
    [
        ("testbins:links.o", {}, "undefined symbol"),
        ("testbins:poke.o", {"entry": "text_poke"}, "defines none of text_poke,"),
        ("testbins:poke.o", {"glue": "fbt"}, "fbt_patch_tracepoint, which no object defines"),
        ("testbins:poke.o", {"glue": "text-poek"}, "did you mean 'text-poke'"),
        ("testbins:scanner.o", {"glue": "fbt", "entry": "x"}, "calls fbt_patch_tracepoint, not x"),
        ("/nonexistent.o", {}, "/nonexistent.o"),
    ],
)
def test_what_cannot_be_used_is_one_message(file, options, words):
    with pytest.raises(RaceError, match=words):
        explored("x86_64", file, patch="fbt::malloc:entry", **options)


def test_an_object_for_another_isa():
    with pytest.raises(NoPortError, match="is for riscv64, not for x86_64"):
        explored("x86_64", str(built(ISAS["riscv64"]) / "objects" / "poke.o"))


def test_bytes_beside_the_patch_must_not_change():
    with pytest.raises(RaceError, match=r"writes code\+0x4, which is not part of the patch"):
        explored("aarch64", "testbins:poke-wide.o")


# -- from events to operations


@pytest.mark.parametrize(
    ("effects", "kinds"),
    [
        ("CLEAN COMPLETE INVALIDATE COMPLETE", [Wait, Flush]),
        ("INVALIDATE COMPLETE CLEAN COMPLETE", [Wait]),
        ("CLEAN INVALIDATE COMPLETE", [Wait]),
        ("CLEAN COMPLETE INVALIDATE", [Wait]),
        ("ORDER", [Wait]),
    ],
)
def test_caches_must_be_maintained_in_order(effects, kinds):
    patch = find(ISAS["aarch64"], PAIRS["aarch64"])
    store = Store(patch.site, patch.new[:4])
    found = list(operations(patch, [store, *(Effect[name] for name in effects.split())]))
    assert [type(one) for one in found] == [Store, *kinds]


def test_a_store_beyond_the_patch_counts_as_its_part_if_the_rest_is_as_before():
    patch = find(ISAS["x86_64"], "code:0f1f440000c390909090:0:e900010000")
    assert list(operations(patch, [Store(patch.site, patch.new + patch.code[5:8])])) == [Store(patch.site, patch.new)]


@pytest.mark.parametrize(
    ("isa", "text", "effect"),
    [
        ("x86_64", "cpuid", "SYNCHRONIZE"),
        ("x86_64", "mfence", "COMPLETE"),
        ("x86_64", "lock add dword ptr [rax], 1", "COMPLETE"),
        ("x86_64", "xchg dword ptr [rax], ecx", "COMPLETE"),
        ("x86_64", "xchg eax, ecx", ""),
        ("i386", "iretd", "SYNCHRONIZE"),
        ("aarch64", "dsb ish", "COMPLETE"),
        ("aarch64", "dmb ishst", "ORDER"),
        ("aarch64", "isb", "SYNCHRONIZE"),
        ("aarch64", "nop", ""),
        ("riscv64", "fence.i", "SYNCHRONIZE"),
        ("riscv64", "fence w, o", "COMPLETE"),
        ("riscv64", "fence r, r", ""),
    ],
)
def test_barriers_of_the_isas(isa, text, effect):
    found = ISAS[isa].fetching.barrier(machine_code(ISAS[isa], text, 0)).effect
    assert (Effect[effect] in found) if effect else not found


@pytest.mark.parametrize(("word", "name"), [(0xD50B7B23, "CLEAN"), (0xD50B7523, "INVALIDATE")])
def test_operations_on_caches_name_the_register_with_the_address(word, name):
    found = ISAS["aarch64"].fetching.barrier(word.to_bytes(4, "little"))
    assert found == (Effect[name], "x3")
