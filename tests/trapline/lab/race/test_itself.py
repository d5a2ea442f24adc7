"""The CPU that patches executes the code itself, and may have a known bug."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from emu.isa import ISAS
from trapline.commands.race import race_command
from trapline.lab.race.methods import SELF
from trapline.lab.race.model import Model, Race
from trapline.lab.race.objects.method import own_method
from trapline.lab.race.patch import NoPortError, RaceError
from trapline.lab.race.probe_names import find
from trapline.lab.race.search import explore, replay

# Method -> the ISAs on which a CPU that calls the code itself may still execute the old instruction.
STALE = {
    "no-barrier": {"aarch64", "riscv64"},
    "write-early": {"aarch64"},
    "write-nosync": set(),
    "write-once": set(),
    "stop-machine": set(),
}
# inc eax; jmp to the next instruction; nop of five bytes, which becomes a jump; ret
TWICE = "code:40eb003e8d742600c3:3:e900010000"


def alone(patch, method, *, erratum="", passes=1):
    """Return the exploration of the patching CPU by itself."""
    return explore(Race(patch, method, SELF, 1, passes, erratum=erratum))


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("method", STALE)
def test_each_isa_needs_its_own_barriers_before_a_cpu_executes_what_it_has_stored(isa, method):
    found = alone(find(ISAS[isa], "fbt::malloc:entry"), method).found
    assert (found.failure.kind if found.failure else "") == ("missed" if isa in STALE[method] else "")
    assert found.complete == (found.failure is None)


@pytest.mark.parametrize("isa", ISAS)
def test_the_patching_cpu_takes_its_own_breakpoint_and_then_no_more(isa):
    explored = alone(find(ISAS[isa], "fbt::malloc:entry"), "write-once")
    patch = explored.race.patch
    codes = {code for at, code in explored.model.fetched if at == patch.site}
    # A LOCK before a mov is undefined as a whole: its instruction is longer than what is patched.
    (new,) = (code for code in codes if code.startswith(patch.new))
    (old,) = codes - {new}
    assert patch.code[patch.offset :].startswith(old)


@pytest.mark.parametrize("isa", ISAS)
def test_others_execute_the_code_meanwhile(isa):
    """What holds with other CPUs holds with the patching one as well, and takes more states."""
    patch = find(ISAS[isa], "fbt::malloc:entry")
    others = explore(Race(patch, "stop-machine", "toggle", 2, 1)).found
    both = explore(Race(patch, "stop-machine", SELF, 2, 1)).found
    assert both.complete
    assert both.states > others.states


def test_ones_own_patcher_in_c_that_has_its_barriers_in_the_wrong_order_calls_the_old_code():
    patch = find(ISAS["aarch64"], "code:1f2003d5c0035fd6:0:40000014")
    for name, kind in (("poke", ""), ("poke-early", "missed")):
        own = own_method(patch, f"testbins:{name}.o")
        found = explore(Race(patch, own.name, SELF, 1, 1, own)).found
        assert (found.failure.kind if found.failure else "") == kind


def test_a_k6_executes_twice_what_follows_its_store_unless_it_serializes():
    patch = find(ISAS["i386"], TWICE)
    assert alone(patch, "write-nosync").found.complete
    assert alone(patch, "write-early", erratum="amd-k6").found.complete
    assert alone(patch, "write-once", erratum="amd-k6").found.complete, "calls of other CPUs come after the store"
    failed = alone(patch, "write-nosync", erratum="amd-k6")
    assert failed.found.failure.kind == "wrong result"
    assert "(inc eax) at code+0x0, and goes on once more" in failed.found.trace[-4].text
    model, trace = replay(failed.line)
    assert (model.race.erratum, trace[-1].failure) == ("amd-k6", failed.found.failure)


@pytest.mark.parametrize(
    ("code", "offset", "why"),
    [
        ("403e8d742600c3", 1, "no jump leads to the store"),
        ("8900eb003e8d742600c3", 4, "a store is not repeated"),
        ("b801000000eb003e8d742600c3", 7, "a constant is the same twice"),
    ],
)
def test_a_k6_is_right_if_there_is_nothing_to_repeat_or_no_harm_in_it(code, offset, why):
    patch = find(ISAS["i386"], f"code:{code}:{offset}:e900010000")
    assert alone(patch, "write-nosync", erratum="amd-k6").found.complete, why


def test_what_an_erratum_and_one_cpu_are_for_is_said():
    patch = find(ISAS["x86_64"], "fbt::malloc:entry")
    with pytest.raises(NoPortError, match="x86_64 has no erratum 'amd-k6'"):
        alone(patch, "write-nosync", erratum="amd-k6")
    with pytest.raises(RaceError, match="amd-k6 is about a CPU that executes what it has stored: scenario 'self'"):
        Model(Race(patch, "write-nosync", erratum="amd-k6"))
    with pytest.raises(RaceError, match="one CPU alone has no race but in the scenario 'self'"):
        Model(Race(patch, "write-nosync", cpus=1))


def test_the_command_leaves_out_isas_without_the_erratum_and_says_so(tmp_path):
    page = tmp_path / "race.html"
    words = ["--patch", TWICE, "--isa", "i386", "--scenario", "self", "--cpus", "1", "--method", "write-nosync"]
    failed = CliRunner().invoke(race_command, [*words, "--erratum", "amd-k6", "--html", str(page)])
    assert failed.exit_code == 1
    assert '"name":"patcher","where":"code+0x3"' in page.read_text().replace(": ", ":").replace(", ", ",")
    words = ["--patch", "fbt::malloc:entry", "--scenario", "self", "--method", "write-once", "--erratum", "amd-k6"]
    left = CliRunner().invoke(race_command, words)
    assert left.exit_code == 0, left.output
    assert left.output.count("has no erratum 'amd-k6': left out") == len(ISAS) - 1
