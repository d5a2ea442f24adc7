"""The user's compiled decoder of uprobes against the package's rules (testbins/objects/decoder.c)."""

from collections import Counter

import pytest

from emu.assembly import machine_code
from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from tests.support.some import some
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.decoder.decisions import made_encodings
from trapline.lab.objects.decoder.trial import why_incomparable
from trapline.lab.objects.decoder.word_sweep import STRIDE, Sweep, loop_object
from trapline.lab.objects.findings import Difference, ObjectReport
from trapline.lab.objects.kernels.linux_uprobes import LinuxUprobesGlue
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.user_code import UserCode
from trapline.lab.objects.verdict import DECISIONS

# Those whose instructions are words.
_WORDS = pytest.mark.parametrize("isa", [one for one in ISAS.values() if one.registers.link], ids=lambda isa: isa.name)
_EVERY_ISA = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)
_SAMPLE = 400
# A jump backwards.
_BACKWARDS = {"x86_64": 0x90EB, "i386": 0x90EB, "aarch64": 0x17FF_FF00, "riscv64": 0xF01F_F06F}


# A decoder that reads a bad address for some words, and does not return for others.
FAILING = """
    ldr w1, [x0, #4]; and w1, w1, #7; cmp w1, #6; b.eq bad; b.gt again; mov w0, #0; ret
    bad: mov x0, #0; ldr x0, [x0]
    again: b again
"""


def _check(isa, name, **options):
    request = Request(**{"sample": _SAMPLE, "states": 4, **options})
    return check_objects([built(isa) / "objects" / name], LinuxUprobesGlue, request, isa)


@_EVERY_ISA
def test_decisions_differ_where_the_decoder_knows_less(isa):
    report = _check(isa, "decoder.o", states=1)
    assert report.counts["encodings"] == _SAMPLE
    assert report.counts["simulated"] >= 1
    # What is simulated does as the CPU; copies of what depends on its address do not.
    assert {"decoded"} <= {one.kind for one in report.differences} <= {"decoded", "displaced"}
    assert any("executed as copies by theirs, simulated by ours" in one.what for one in report.differences)
    assert not report.failures
    assert not report.accesses


@_EVERY_ISA
def test_a_wrong_simulation_is_found_in_a_state(isa):
    report = _check(isa, "decoder-buggy.o", first=_number(_BACKWARDS[isa.name]), sample=50)
    found = [one for one in report.differences if one.kind == "simulated"]
    assert found, as_text(report)
    assert all(f"{isa.registers.pc} is 0x" in one.what and "on the CPU 0x" in one.what for one in found)


@_EVERY_ISA
def test_a_read_behind_the_instruction_is_found(isa):
    # The encoding of all ones is this one in the order of the sweep.
    request = Request(sample=1, first=_number(0xFFFF_FFFF))
    report = check_objects([built(isa) / "objects" / "decoder-buggy.o"], LinuxUprobesGlue, request, isa)
    assert [one.what for one in report.accesses] == ["read out of bounds"]
    assert report.accesses[0].subject.startswith("ffff")


def test_a_sweep_says_how_it_continues():
    report = _check(ISAS["riscv64"], "decoder.o", first=1000, states=0)
    assert any(f"--first {1000 + _SAMPLE} continues" in one for one in report.omitted)


@pytest.mark.exhaustive
@_EVERY_ISA
def test_made_encodings_find_what_the_program_does_not_have(isa):
    kernel = Image(built(isa) / "kernel")
    found = {}
    for name in ("decoder.o", "decoder-buggy.o"):
        request = Request(kernel, "sys_getgid", fuzz=150, states=2)
        report = check_objects([built(isa) / "objects" / name], LinuxUprobesGlue, request, isa)
        assert report.counts["made encodings"] == 150 < report.counts["encodings"] < 180
        made = [one for one in report.differences if one.function == "made"]
        keys = [(one.kind, one.where, one.instruction, one.what) for one in made]
        assert len(keys) == len(set(keys))
        assert all(bytes.fromhex(one.instruction.split()[0]) for one in made)
        found[name] = report
    assert not found["decoder.o"].accesses
    assert len(found["decoder-buggy.o"].differences) + len(found["decoder-buggy.o"].accesses) > 0


@_EVERY_ISA
def test_a_finding_about_a_made_encoding_is_as_short_as_it_can_be_and_found_again_by_its_line(isa):
    kernel, path = Image(built(isa) / "kernel"), built(isa) / "objects" / "decoder-buggy.o"
    report = check_objects([path], LinuxUprobesGlue, Request(kernel, "sys_getgid", fuzz=60, states=3), isa)
    made = [one for one in report.differences if one.function == "made"]
    assert len(made) > 5
    for one in made:
        given = bytes.fromhex(one.what.rpartition("--bytes ")[2])
        assert one.instruction.split()[0] == given.hex()
        again = check_objects([path], LinuxUprobesGlue, Request(given=given, states=3), isa)
        assert [(each.kind, each.what, each.where) for each in again.differences] == [
            (one.kind, one.what.partition("; again")[0], one.where)
        ]
        assert again.counts["encodings"] == 1
    # A register or a displacement that does not matter is 0.
    sizes = Counter(sum(bit == "1" for bit in f"{int(one.instruction.split()[0], 16):b}") for one in made)
    assert sum(number for bits, number in sizes.items() if bits <= 9) > len(made) // 2


def test_shrinking_counts_nothing():
    isa = ISAS["riscv64"]
    kernel, path = Image(built(isa) / "kernel"), built(isa) / "objects" / "decoder-buggy.o"
    report = check_objects([path], LinuxUprobesGlue, Request(kernel, "sys_getgid", fuzz=60, states=1), isa)
    plain = check_objects([path], LinuxUprobesGlue, Request(kernel, "sys_getgid", states=1), isa)
    assert report.counts["encodings"] == plain.counts["encodings"] + 60
    assert plain.counts["executed"] < report.counts["executed"] <= plain.counts["executed"] + 60


def test_made_encodings_are_the_same_each_time_and_none_is_too_long():
    for isa in some(ISAS.values()):
        pieces = [isa.traps.wait, *isa.traps.breakpoints]
        made = list(made_encodings(isa, pieces, 200))
        assert made == list(made_encodings(isa, pieces, 200))
        assert len(set(made)) > 60
        assert all(0 < len(one) <= 15 for one in made)


@_EVERY_ISA
def test_the_instructions_of_a_program_are_asked_and_their_copies_executed(isa):
    right, wrong = (_check_program(isa, name) for name in ("decoder.o", "decoder-buggy.o"))
    assert right.counts["encodings"] > 10
    assert right.counts["executed"] >= 5
    assert {one.kind for one in right.differences} <= {"decoded"}, as_text(right)
    assert any(one.kind == "displaced" and "on the CPU 0x" in one.what for one in wrong.differences)


def _check_program(isa, name):
    request = Request(Image(built(isa) / "linux" / "tiny"), states=3)
    return check_objects([built(isa) / "objects" / name], LinuxUprobesGlue, request, isa)


def _number(word):
    """Return the number of an encoding in the order of the sweep."""
    return pow(STRIDE, -1, 1 << 32) * word % (1 << 32)


def _sweep(isa, path, words, name="decoder.o"):
    return check_objects([built(isa) / "objects" / name], LinuxUprobesGlue, Request(sample=words, sweep=path), isa)


@pytest.mark.parametrize(
    ("isa", "word", "sentence"),
    [
        ("x86_64", 0x9D, "states not compared: the instruction sets the trap flag"),  # popf
        ("i386", 0x9000C2, "1 instruction not executed: ret with 0x8000 bytes"),
        ("x86_64", 0xA20F, "1 instruction not executed: cpuid"),
        ("riscv64", 0, "1 instruction not executed: c.unimp"),
    ],
)
def test_what_is_not_compared_is_said(isa, word, sentence):
    report = _check(ISAS[isa], "decoder.o", first=_number(word), sample=1, states=20)
    assert any(sentence in one for one in report.omitted), report.omitted
    assert not [one for one in report.differences if one.kind != "decoded"]


@pytest.mark.parametrize(
    ("isa", "code"), [("x86_64", "c21000"), ("x86_64", "c3"), ("aarch64", "a0005fd6"), ("riscv64", "8280")]
)
def test_other_returns_are_executed(isa, code):
    assert why_incomparable(ISAS[isa], bytes.fromhex(code)) == ""


@_WORDS
def test_a_sweep_in_the_emulator_decides_as_single_calls_do(isa, tmp_path):
    report = _sweep(isa, tmp_path / "kept.json", 4_000)
    request = Request(sample=4_000, states=0)
    single = check_objects([built(isa) / "objects" / "decoder.o"], LinuxUprobesGlue, request, isa, checked=False)
    names = ("encodings", *DECISIONS)
    assert [report.counts[name] for name in names] == [single.counts[name] for name in names]
    # Each group of the sweep is a rule, and has the number of its encodings.
    counted = Counter(one.what for one in single.differences if one.kind == "decoded")
    found = {
        " ".join(words): int(number.replace(",", ""))
        for number, _encodings, *words in (one.what.split() for one in report.differences)
    }
    assert found == counted
    assert not report.failures


def test_a_sweep_goes_on_where_it_stopped(tmp_path):
    isa, path = ISAS["riscv64"], tmp_path / "kept.json"
    for done in (1_000, 3_000):
        assert _sweep(isa, path, done if done == 1_000 else 2_000).counts["encodings"] == done
    at_once = _sweep(isa, tmp_path, 3_000)
    assert at_once.counts == _sweep(isa, path, 0).counts
    assert len(list(tmp_path.glob("sweep-*.json"))) == 1
    with pytest.raises(RequestError, match="results of other objects or rules"):
        _sweep(isa, path, 10, "decoder-buggy.o")
    path.write_text("{")
    with pytest.raises(RequestError, match="not the results of a sweep"):
        _sweep(isa, path, 10)


def test_encodings_at_which_the_decoder_fails_are_failures_and_the_others_are_decided(tmp_path):
    isa = ISAS["aarch64"]
    paths = [built(isa) / "objects" / "decoder.o"]
    code = UserCode(paths, LinuxUprobesGlue, isa, checked=False, beside=[loop_object(isa)])
    decoder = code.glue.decoder()
    place = code.address(decoder.function)
    code.guest.engine.memory.write(place, machine_code(isa, FAILING, place))
    sweep = Sweep(code, decoder, tmp_path / "kept.json")
    sweep.run(40)
    words = [number * STRIDE % (1 << 32) for number in range(40)]
    assert [word for word, _what, _where in sweep.progress.failures] == [word for word in words if word & 7 in {6, 7}]
    assert {what.partition(":")[0] for _word, what, _where in sweep.progress.failures} == {
        "the function faulted",
        "it had not returned after 5,000,000 instructions",
    }
    assert sum(group.words for group in sweep.groups()) == sum(word & 7 < 6 for word in words)


def test_differences_of_one_cause_are_one_line_and_wrong_results_come_first():
    def difference(kind, function, instruction, row):
        return Difference(kind, function, 0, "", instruction, "differs", "mine.c:3", row)

    report = ObjectReport("mine.o", "riscv64", "LinuxUprobesGlue")
    report.differences += [
        *(difference("decoded", f"f{number}", "a001 c.j 4", "c.j") for number in range(300)),
        difference("simulated", "g", "63e7a704 bltu a5, a0, 0x4e", "bltu"),
        difference("simulated", "h", "63e4b700 bltu a5, a1, 8", "bltu"),
    ]
    assert as_text(report).splitlines() == [
        "mine.o (riscv64, LinuxUprobesGlue)",
        "simulated: 2, of 1 cause",
        "  2 times, such as h+0x0  63e4b700 bltu a5, a1, 8: differs [mine.c:3]",
        "decoded: 300, of 1 cause",
        "  300 times, such as f0+0x0  a001 c.j 4: differs [mine.c:3]",
        "not the same",
    ]
