"""Sweeps of x86: the user's decoder about enumerated encodings, against the package's rules."""

from collections import Counter

import pytest

from emu.assembly import machine_code
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from emu.isa.x86.instruction import LONG_MODE, PROTECTED_MODE, take_apart
from emu.isa.x86.length import PREFIXES
from providers.fidelity import Fidelity
from tests.support.some import some
from trapline.lab.check.encodings.x86_space import LONGEST, Space
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.decoder import sweep_check
from trapline.lab.objects.decoder.batches import Batches
from trapline.lab.objects.decoder.byte_sweep import ByteSweep
from trapline.lab.objects.decoder.sweep_check import kinds
from trapline.lab.objects.decoder.trial import PLACE
from trapline.lab.objects.decoder.word_sweep import loop_object
from trapline.lab.objects.glues import find
from trapline.lab.objects.report import as_text
from trapline.lab.objects.request import Request, RequestError
from trapline.lab.objects.user_code import UserCode
from trapline.lab.objects.verdict import COPIED, REFUSED, SIMULATED, Verdict

_X86 = pytest.mark.parametrize("isa", [ISAS["x86_64"], ISAS["i386"]], ids=lambda isa: isa.name)
_GLUES = {
    "linux-uprobes": "xol.o",
    "linux-kprobes": "kprobes.o",
    "fasttrap": "exhibits/loop_count.o",
    "illumos-fasttrap": "illumos_fasttrap.o",
}


class _Chosen:
    """The encodings with some heads only, and of these one in so many."""

    def __init__(self, isa, heads, every):
        self._all = Space(isa, 0)
        self._all.__dict__["_heads"] = tuple(heads)
        self._all._step = 1
        self._every = every

    def __len__(self):
        return len(self._all) // self._every

    def encoding(self, number):
        # The first ones have displacements of 0, which show no wrong branch.
        return self._all.encoding(len(self._all) - 1 - number * self._every)

    def text(self):
        return "chosen"


def _swept(isa, glue, name, kept, words, bound=0, states=1):
    request = Request(sample=words, sweep=kept, bound=bound, states=states)
    return check_objects([built(isa) / "objects" / name], find(glue), request, isa)


def _code(isa, glue="linux-uprobes"):
    return UserCode([built(isa) / "objects" / _GLUES[glue]], find(glue), isa, checked=False, beside=[loop_object(isa)])


@pytest.mark.exhaustive
@_X86
def test_each_number_is_another_encoding_and_the_first_ones_are_of_all_forms(isa):
    space = Space(isa.name, 0)
    assert sorted(number * space._step % len(space) for number in range(0, len(space), 997)) != list(range(len(space)))
    first = [space.encoding(number) for number in range(4000)]
    assert {len(one.code) for one in first} == {LONGEST}
    assert {one.form for one in first} >= {"one byte", "0f", "0f 38", "0f 3a", "vex 2", "vex 3", "evex"}
    assert len({one.code[:8] for one in first}) == 4000
    assert {one.opcode for one in first} == set(range(256))


def test_a_bound_is_the_number_of_prefixes_equal_ones_too():
    for bound in range(3):
        codes = {head.data for head in Space("i386", bound)._heads if head.form == "one byte"}
        assert max(map(len, codes)) == bound
        assert len(codes) == sum(11**count for count in range(bound + 1))
    assert b"\x66\x66" in codes


def test_rex_stands_behind_the_prefixes_and_where_it_is_void():
    heads = {head.data for head in Space("x86_64", 1)._heads if head.form == "one byte"}
    assert {bytes((0x66, rex)) for rex in range(0x40, 0x50)} < heads
    assert {b"\x48\x66", b"\x41\x66\x48", b"\x66\x48\x41"} < heads


@_X86
def test_vector_prefixes_are_those_of_the_mode(isa):
    mode = LONG_MODE if isa.name == "x86_64" else PROTECTED_MODE
    known = Counter()
    for head in Space(isa.name, 0)._heads:
        if head.form in {"vex 2", "vex 3", "evex", "xop"}:
            insn = take_apart(head.data + b"\x58\xc1\0\0\0", mode)
            known[head.form, insn is None or insn.vector_at is not None] += 1
    assert all(is_vector for _form, is_vector in some(known))


@_X86
@pytest.mark.parametrize("glue", _GLUES)
def test_a_batch_answers_as_single_calls_do(isa, glue):
    code = _code(isa, glue)
    decider = code.glue
    sweep_codes = [Space(isa.name, 1).encoding(number).code for number in range(300)]
    batches = Batches(code, decider.question(), 300)
    verdicts = [decider.verdict(batches.answer(raw)) for raw in batches.ask(sweep_codes)]
    assert [one.decision for one in verdicts] == [decider.decide(PLACE, each) for each in sweep_codes]
    assert not batches.failures


@pytest.mark.exhaustive
@_X86
def test_decisions_lengths_and_corrections_differ_only_where_the_decoder_is_wrong(isa, tmp_path):
    found = {}
    # Behind these the opcode is another one; behind 8f it may be XOP's, which xol.c takes for pop.
    behind = {*PREFIXES, 0x0F, 0x8F, *(range(0x40, 0x50) if isa.name == "x86_64" else ())}
    heads = [head for head in Space(isa.name, 1)._heads if head.form == "one byte"
             and head.data in {b"", b"\x64", b"\x66", b"\x67"}]  # fmt: skip
    chosen = _Chosen(isa.name, heads, 3)
    for name in ("xol.o", "xol-buggy.o"):
        code = UserCode([built(isa) / "objects" / name], find("linux-uprobes"), isa, checked=False,
                        beside=[loop_object(isa)])  # fmt: skip
        sweep = ByteSweep(code.glue, chosen, Fidelity.EXACT, tmp_path)
        sweep.run(len(chosen))
        found[name] = {
            (group.theirs, group.ours)
            for group in sweep.groups()
            if group.opcode not in behind
            and COPIED in group.theirs and COPIED in group.ours
            # xol.c does not know addresses relative to rip.
            and not any(register in group.ours for register in ("rsi", "rdi", "rbx"))
        }  # fmt: skip
    assert found["xol.o"] == set()
    more = found["xol-buggy.o"]
    assert (f"{COPIED} (corrected: pc)", f"{COPIED} (corrected: call)") in more
    if isa.name == "i386":
        assert any("of 6 bytes" in theirs or "of 7 bytes" in theirs for theirs, _ours in more)


@_X86
def test_the_report_groups_counts_and_says_what_is_enumerated(isa, tmp_path):
    report = _swept(isa, "linux-uprobes", "xol.o", tmp_path, 20_000)
    text = as_text(report)
    assert report.counts["encodings"] == 20_000
    assert sum(report.counts[name] for name in (REFUSED, SIMULATED, COPIED)) == 20_000
    assert f"enumerated: {len(Space(isa.name, 0)):,} encodings" in text
    assert "the same command continues" in text
    assert "more prefixes than 0 (--bound)" in text
    differing = sum(int(one.what.split()[0].replace(",", "")) for one in report.differences)
    assert differing == report.counts["decided differently"] > 0


@pytest.mark.exhaustive
@_X86
def test_a_simulation_of_each_rule_is_executed(isa, tmp_path, monkeypatch):
    head = next(head for head in Space(isa.name, 0)._heads if head.form == "one byte")
    monkeypatch.setattr(sweep_check, "Space", lambda name, _bound: _Chosen(name, [head], 1))
    report = _swept(isa, "fasttrap", "exhibits/loop_count-buggy.o", tmp_path, 80_000, states=20)
    assert report.counts["executed"] == 1
    assert [one.kind for one in report.differences if one.kind != "decoded"] == ["simulated"], as_text(report)


@_X86
def test_a_sweep_goes_on_where_it_stopped_and_refuses_the_file_of_others(isa, tmp_path):
    kept = tmp_path / "kept.json"
    for done in (1_000, 3_000):
        words = 1_000 if done == 1_000 else 2_000
        assert _swept(isa, "linux-uprobes", "xol.o", kept, words).counts["encodings"] == done
    at_once = _swept(isa, "linux-uprobes", "xol.o", tmp_path, 3_000)
    assert at_once.counts == _swift(isa, kept).counts
    for name, bound in (("xol-buggy.o", 0), ("xol.o", 1)):
        with pytest.raises(RequestError, match="results of other objects or rules"):
            _swept(isa, "linux-uprobes", name, kept, 10, bound)
    kept.write_text('{"digest": 1}')
    with pytest.raises(RequestError, match="results of other objects or rules"):
        _swept(isa, "linux-uprobes", "xol.o", kept, 10)
    kept.write_text("[]")
    with pytest.raises(RequestError, match="not the results of a sweep"):
        _swept(isa, "linux-uprobes", "xol.o", kept, 10)


def _swift(isa, kept):
    """Return the report of what is kept, without deciding about more."""
    return _swept(isa, "linux-uprobes", "xol.o", kept, 0)


def test_encodings_at_which_the_decoder_fails_are_failures_and_the_others_are_decided(tmp_path):
    isa = ISAS["x86_64"]
    code = _code(isa)
    place = code.address("arch_uprobe_analyze_insn")
    # It reads address 0 if the instruction's byte is ff, and does not return if it is fe.
    text = "mov al, [rdi]; cmp al, 0x63; je bad; cmp al, 0x62; again: je again; xor eax, eax; ret; bad: mov eax, [0]"
    code.guest.engine.memory.write(place, machine_code(isa, text, place))
    sweep = ByteSweep(code.glue, Space("x86_64", 0), Fidelity.EXACT, tmp_path)
    sweep.run(64)
    first = [sweep.space.encoding(number).code for number in range(64)]
    wrong = [one.hex() for one in first if one[0] in {0x62, 0x63}]
    assert [one for one, _what, _where in sweep.progress.failures] == wrong != []
    assert sum(group.encodings for group in sweep.groups()) == 64 - len(wrong)


def test_words_have_no_bound_and_kprobes_of_words_no_sweep(tmp_path):
    isa = ISAS["riscv64"]
    with pytest.raises(RequestError, match="--bound is for prefixes of x86"):
        _swept(isa, "linux-uprobes", "decoder.o", tmp_path, 10, bound=1)
    request = Request(sample=10, sweep=tmp_path)
    with pytest.raises(RequestError, match="no rules of kprobes"):
        check_objects([built(isa) / "objects" / "kprobes.o"], find("linux-kprobes"), request, isa)


def test_a_part_that_is_not_known_agrees_with_everything():
    assert Verdict(COPIED, 3).agrees(Verdict("", 3, "corrected: pc"))
    assert not Verdict(COPIED, 3).agrees(Verdict(COPIED, 4))
    assert not Verdict(REFUSED, how="error 8").agrees(Verdict(REFUSED, how="error 22"))
    assert Verdict(COPIED, 1).against(Verdict(COPIED, 2)) == f"{COPIED} of 1 byte"


def test_kinds_are_ordered_by_their_importance_and_size(tmp_path):
    code = _code(ISAS["i386"])
    sweep = ByteSweep(code.glue, Space("i386", 0), Fidelity.EXACT, tmp_path)
    sweep.run(5_000)
    found = [(kind, sum(group.encodings for group in parts)) for kind, parts in kinds(list(sweep.groups()))]
    ranks = [
        2 if kind.theirs.startswith(REFUSED) and kind.ours.startswith(REFUSED) else kind.rule == "malformed"
        for kind, _size in found
    ]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    for rank in set(ranks):
        sizes = [size for (_kind, size), one in zip(found, ranks, strict=True) if one == rank]
        assert sizes == sorted(sizes, reverse=True)
