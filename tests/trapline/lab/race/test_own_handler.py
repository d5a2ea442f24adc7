"""The user's own compiled handler of breakpoints, which runs where another CPU traps (testbins/objects/poke_trap.c)."""

import pytest

from emu.isa import ISAS
from tests.support.races import kind_of
from trapline.lab.race.model import Race
from trapline.lab.race.objects.method import glue_of, own_method
from trapline.lab.race.operations import Data, Divert
from trapline.lab.race.patch import RaceError
from trapline.lab.race.probe_names import find
from trapline.lab.race.search import explore, replay

EVERY_ISA = pytest.mark.parametrize("isa", ISAS)
X86 = {"x86_64", "i386"}


def own(isa, file, **options):
    patch = find(ISAS[isa], glue_of("text-poke").usual_patch(ISAS[isa]))
    return patch, own_method(patch, file, **options)


def explored(isa, mistake="", scenario="toggle", cpus=2, passes=2, **options):
    patch, method = own(isa, f"testbins:poke_trap{mistake}.o", **options)
    return explore(Race(patch, method.name, scenario, cpus, passes, method))


def kind(*words, **options):
    return kind_of(explored(*words, **options).found)


def glue_with(folder, handle):
    """Write a glue whose `handle` has these lines; return its name."""
    glue = folder / "mine.py"
    glue.write_text(
        "from trapline.lab.race.objects.text_poke import TextPokeGlue\n"
        "class Mine(TextPokeGlue):\n"
        "    def handle(self, handler, registers):\n" + handle
    )
    return f"{glue}:Mine"


@EVERY_ISA
def test_the_right_handler_holds_and_each_mistake_is_found(isa):
    assert kind(isa) == "holds"
    assert kind(isa, "-stale") == "unclaimed"
    assert kind(isa, "-forgets") == "unclaimed"
    # Stores of x86 are seen in their order.
    assert kind(isa, "-unordered") == ("holds" if isa in X86 else "unclaimed")
    assert kind(isa, "-target") == "wrong result"


@EVERY_ISA
@pytest.mark.parametrize("scenario", ["enable", "disable", "two"])
def test_it_holds_in_each_scenario(isa, scenario):
    assert kind(isa, scenario=scenario, passes=1) == "holds"


CALLS = {
    "x86_64": "code:0f1f440000c3:0:e800010000",
    "i386": "code:0f1f440000c3:0:e800010000",
    "aarch64": "code:1f2003d5c0035fd6:0:40000094",
    "riscv64": "code:1300000082800000:0:ef000010",
}


@EVERY_ISA
def test_a_handler_that_writes_a_return_address_does_as_the_call(isa):
    patch = find(ISAS[isa], CALLS[isa])
    for file, wanted in (("poke_trap", None), ("poke_trap-target", "wrong result")):
        method = own_method(patch, f"testbins:{file}.o")
        found = explore(Race(patch, method.name, own=method)).found
        assert (found.failure and found.failure.kind) == wanted, found.failure
    # A call after which the stack or the link is not that of a call is found.
    method = own_method(patch, "testbins:poke_trap.o")
    answer = method.handler.answer
    registers = ISAS[isa].registers
    method.handler.answer = lambda *words: _without(answer(*words), registers.link or registers.sp)
    failure = explore(Race(patch, method.name, own=method)).found.failure
    assert failure.kind == "wrong result"
    assert "registers or memory are not those of the instruction" in failure.text


def _without(answer, register):
    changed = {name: value for name, value in answer.registers.items() if name != register}
    return answer._replace(registers=changed)


def test_two_cpus_may_trap():
    assert kind("riscv64", cpus=3, passes=1) == "holds"
    assert kind("riscv64", "-forgets", cpus=3, passes=1) == "unclaimed"


def test_a_failure_is_replayed_and_says_what_the_handler_did():
    failed = explored("aarch64", "-target", handler="patch_trap_handler")
    assert failed.found.trace[-1].text == "patch_trap_handler leads to 0x400104"
    assert failed.found.failure.text.endswith("not to code+0x4 or 0x400100")
    assert "handler=patch_trap_handler" in failed.line
    model, trace = replay(failed.line)
    assert trace == failed.found.trace
    assert model.race.own.handler.name == "patch_trap_handler"


@EVERY_ISA
def test_the_data_that_the_handler_reads_are_steps_of_the_patcher(isa):
    patch, method = own(isa, "testbins:poke_trap.o")
    method.handler.begin()
    script = method.method.write(patch, patch.site, patch.new)
    assert Divert(on=True) not in script
    assert sum(isinstance(one, Data) for one in script) >= 4
    # The record is complete before the breakpoint is stored.
    stored = next(place for place, one in enumerate(script) if not isinstance(one, Data))
    assert stored >= 3
    # It is written again as at first, though the data have other numbers.
    method.handler.begin()
    again = method.method.write(patch, patch.site, patch.new)
    assert [type(one) for one in again] == [type(one) for one in script]


def test_what_a_handler_writes_to_the_patchers_data_is_forgotten():
    patch, method = own("x86_64", "testbins:poke_trap.o")
    method.handler.begin()
    method.method.write(patch, patch.site, patch.new)
    before = method.handler.snapshots.present()
    answer = method.handler.answer(0, patch.new, {"rip": patch.site, "rsp": 0}, bytes(4096))
    assert not answer.claimed  # the first data have no record
    assert method.handler.snapshots.present() == before


def test_registers_that_a_handler_changes_wrongly_are_found(tmp_path):
    glue = glue_with(
        tmp_path,
        "        claimed, after = super().handle(handler, registers)\n        return claimed, after | {'rbx': 1}\n",
    )
    failed = explored("x86_64", glue=glue).found.failure
    assert failed.kind == "wrong result"
    assert "its registers or memory are not those of the instruction" in failed.text


def test_a_handler_that_faults_is_a_failure(tmp_path):
    glue = glue_with(
        tmp_path, "        self._frame.address = 0\n        self._run({1: self.code.address(handler)}, 0)\n"
    )
    failed = explored("riscv64", glue=glue).found.failure
    assert failed.kind == "wrong result"
    assert "patch_trap_handler fails: the function faulted" in failed.text


def test_a_handler_that_is_not_there_is_one_message():
    with pytest.raises(RaceError, match=r"poke\.o does not define my_handler"):
        own("x86_64", "testbins:poke.o", handler="my_handler")


def test_without_a_handler_the_models_own_is_used():
    assert own("x86_64", "testbins:poke.o")[1].handler is None
