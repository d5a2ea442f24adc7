"""A user's own rules against every encoding."""

from dataclasses import replace

import pytest

from emu.displaced.decision import DisplacedRow, DisplacedTable, Otherwise, OutOfLine, Rule
from emu.isa import AARCH64, ISAS, RISCV64, X86_64
from providers import fasttrap, uprobes
from trapline.lab.check.cpu.rules_under_test import Rules, RulesError
from trapline.lab.check.encodings import SWEPT, chunks, classify, judge
from trapline.lab.check.encodings.run import providers, verdicts

FASTTRAP = {isa: fasttrap.PORTS[isa] for isa in SWEPT}
UPROBES = {isa: uprobes.PORTS[isa] for isa in SWEPT}
OWN = {isa: Rules(pid=FASTTRAP[isa], uprobe=UPROBES[isa], displaced=ISAS[isa].stub) for isa in SWEPT}
X86_64_OWN, AARCH64_OWN, RISCV64_OWN, I386_OWN = (OWN[isa] for isa in ("x86_64", "aarch64", "riscv64", "i386"))

_RISCV = RISCV64.stub
# Takes every jalr for ret.
TOO_WIDE = replace(
    _RISCV,
    rows=tuple(replace(row, mask=0x7F, value=0x67) if row.name == "ret" else row for row in _RISCV.rows),
)
MOVED = replace(
    AARCH64.stub,
    rows=tuple(replace(row, what=Otherwise.OUT_OF_LINE) if row.name == "b label" else row
               for row in AARCH64.stub.rows),
)  # fmt: skip
SHADOWED = DisplacedTable(
    by_code=True,
    rows=(
        *X86_64.stub.rows[:-1],
        DisplacedRow("ret again", 0xFF, 0xC3, 1, Otherwise.REFUSE, why="never", source="nobody"),
        X86_64.stub.rows[-1],
    ),
)


def _careless(code, _fidelity):
    return OutOfLine(Rule("COMMON", "carelessly", "nobody"), 4, code.data[:4])


def _failing(code, fidelity):
    if code.data[:2] == b"\x0f\x77":  # emms
        raise IndexError("index out of range")
    return FASTTRAP["x86_64"].treat(code, fidelity)


FAILING = replace(FASTTRAP["x86_64"], treat=_failing)
CARELESS = replace(FASTTRAP["riscv64"], treat=_careless)


def judged(isa, rules, sample=2000):
    (verdict,) = verdicts(isa, [classify(chunk) for chunk in chunks(isa, sample, f"{__name__}:{rules}")])
    return verdict


@pytest.mark.parametrize("isa", SWEPT)
def test_the_packages_own_rules_are_right_as_users_rules_too_and_the_same(isa):
    rules = f"{__name__}:{isa.upper()}_OWN"
    assert providers(isa, rules) == ("fbt", "pid", "uprobe")
    asked = [classify(chunk) for chunk in chunks(isa, 2000, rules) if chunk.form != "witnesses"]
    looked_up = [classify(chunk) for chunk in chunks(isa, 2000) if chunk.form != "witnesses"]
    for verdict in verdicts(isa, asked):
        assert verdict.disagreements == ()
        assert verdict.doing == judge(isa, verdict.provider, looked_up).doing


def test_a_table_that_runs_branches_out_of_line_is_wrong():
    verdict = judged("aarch64", "MOVED")
    assert not verdict.right
    assert any("b label" in one.ours and one.text.startswith("b #") for one in verdict.disagreements)


def test_a_users_row_that_is_shadowed_is_named():
    assert judged("x86_64", "SHADOWED").unreached == ("ret again",)


def test_a_row_that_takes_reserved_words_too_is_wrong():
    (found,) = judged("riscv64", "TOO_WIDE").disagreements
    assert found.ours == "ours, ret, 4 bytes: emulated as a transfer of control"
    assert found.theirs == "capstone: nothing"


def test_a_port_that_takes_no_care_gets_a_report_of_what_it_broke():
    found = judged("riscv64", "CARELESS").disagreements
    assert any(one.text.startswith("auipc") for one in found)
    assert any(one.text.startswith("c.") and "4 bytes" in one.ours and "2 bytes" in one.theirs for one in found)


def test_rules_that_raise_an_exception_are_reported_where():
    (found,) = judged("x86_64", "FAILING").disagreements
    assert found.ours == "ours, IndexError: index out of range: failed"
    assert found.text == "emms"


def test_rules_that_say_nothing_about_encodings_are_named():
    with pytest.raises(RulesError, match="has no rules for encodings"):
        providers("aarch64", "providers.fbt.aarch64:PORT")
    with pytest.raises(RulesError, match="did you mean"):
        providers("aarch64", f"{__name__}:MOVEDD")
