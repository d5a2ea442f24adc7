"""Encodings against the tables and capstone: samples agree, and errors are found."""

import inspect
import os
import pickle
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module

import pytest

from emu.displaced.decision import Code, Displaced, Otherwise, Refused
from emu.isa import ISAS
from providers import fasttrap, uprobes
from providers.fidelity import Fidelity
from tests.support.some import some
from trapline.lab.check.encodings import (
    SWEPT,
    Chunk,
    ChunkResult,
    cells,
    chunks,
    classification,
    classify,
    exemptions,
    judge,
    native,
    tables,
)
from trapline.lab.check.encodings.classification import forms
from trapline.lab.check.encodings.exemptions import EXEMPTIONS, Exemption
from trapline.lab.check.encodings.results import Doing
from trapline.lab.check.encodings.run import MODULES, as_dict, fingerprint, providers, summary, verdicts
from trapline.lab.check.encodings.space import FORMS, WITNESSES
from trapline.lab.check.encodings.verdict import rows as row_names

SAMPLE = {"aarch64": 100_000, "riscv64": 100_000, "x86_64": 6_000, "i386": 6_000}
TABLES = [(isa, provider) for isa in SWEPT for provider in providers(isa)]


@pytest.fixture(scope="module")
def classified():
    """The sample of each ISA, classified once."""
    return {isa: [classify(chunk) for chunk in chunks(isa, SAMPLE[isa])] for isa in SWEPT}


@pytest.mark.parametrize(("isa", "provider"), TABLES)
def test_a_sample_of_encodings_agrees_with_capstone_and_reaches_every_row(classified, isa, provider):
    verdict = judge(isa, provider, classified[isa])
    assert verdict.disagreements == ()
    assert verdict.unreached == ()
    assert verdict.right


@pytest.mark.parametrize(("isa", "provider"), TABLES)
def test_every_exemption_is_needed(classified, isa, provider):
    assert judge(isa, provider, classified[isa]).unused == ()
    assert all(exemption.why for exemption in EXEMPTIONS[isa])


@pytest.mark.parametrize("isa", SWEPT)
def test_results_survive_being_written_down(classified, isa):
    for result in some(classified[isa]):
        assert ChunkResult.from_json(result.to_json()) == result
        assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301


@pytest.mark.parametrize("isa", SWEPT)
def test_chunks_hold_every_encoding_once(isa):
    for form, size in some(forms(isa).items()):
        end = 0
        for chunk in some(chunk for chunk in chunks(isa) if chunk.form == form):
            assert (chunk.first, chunk.stride) == (end, 1)
            end += chunk.count
        assert end == size


@pytest.mark.parametrize("isa", SWEPT)
@pytest.mark.parametrize("sample", [100, 12_345])
def test_a_sample_is_of_the_size_asked_for(isa, sample):
    found = [chunk for chunk in chunks(isa, sample) if chunk.form != WITNESSES]
    assert sum(chunk.count for chunk in found) == pytest.approx(sample, rel=0.02, abs=9)
    assert all(chunk.numbers[-1] < forms(isa)[chunk.form] for chunk in found)
    assert len(set(found)) == len(found)


def test_forms_hold_each_word_of_an_instruction_once():
    for word in (0x00000013, 0xFFFFFFFF, 0x00000003):
        assert sum(form.holds(word) for form in FORMS["riscv64"].values()) == 1
    for half in range(1 << 16):
        assert sum(form.holds(half) for form in FORMS["riscv64"].values()) == 1


@pytest.mark.skipif(not native.available(), reason="llvmlite is not installed")
@pytest.mark.parametrize("chunk", [
    Chunk("aarch64", "word", 0, 1500, 2863311),
    Chunk("aarch64", "word", 0x54000000, 500, 1),
    Chunk("aarch64", "word", 0xD61F0000, 3000, 11),
    Chunk("riscv64", "word", 0, 2000, 536871),
    Chunk("riscv64", "half 1", 0, 1489, 11),
    Chunk("riscv64", "half 2", 3, 1500, 9),
], ids=str)  # fmt: skip
def test_the_compiled_loop_counts_what_the_python_one_counts(chunk):
    assert sorted(native.count(chunk)) == sorted(cells.count(chunk))


def test_a_key_survives_being_packed():
    key = cells.Key((cells.Choice(37, 3), cells.Choice(0, 0), cells.Choice(1, 31), cells.Choice(63, 1)), 4095, 255)
    assert cells.unpack("aarch64", cells.pack(key)) == key


@pytest.fixture
def change(monkeypatch):
    """Change the rows of a table for the time of a test."""
    caches = (tables.tables, tables.facts, native._counter, classification._ours)

    def forget():
        for cached in caches:
            cached.cache_clear()

    def to(isa, provider, rows):
        monkeypatch.setitem(tables._TABLES[isa], provider, tuple(rows))
        forget()

    yield to
    monkeypatch.undo()
    forget()


def verdict(isa, provider, sample=3000):
    return judge(isa, provider, [classify(chunk) for chunk in chunks(isa, sample)])


def rows(isa, provider):
    return tables.tables(isa)[provider]


def without(isa, provider, name):
    return [row for row in rows(isa, provider) if row.name != name]


@pytest.mark.parametrize(("isa", "provider", "missing", "text"), [
    ("aarch64", "pid", "BLR", "blr"),
    ("aarch64", "pid", "ADRP", "adrp"),
    ("aarch64", "pid", "LDRSW_PC_REL", "ldrsw"),
    ("aarch64", "uprobe", "tbz", "tbz"),
    ("riscv64", "pid", "AUIPC", "auipc"),
    ("riscv64", "pid", "C_BNEZ", "c.bnez"),
    ("riscv64", "uprobe", "jalr", "jr"),
])  # fmt: skip
def test_a_row_that_is_missing_is_found(change, isa, provider, missing, text):
    change(isa, provider, without(isa, provider, missing))
    found = verdict(isa, provider)
    assert not found.right
    assert any(one.text.startswith(text) and "out of line" in one.ours for one in found.disagreements)


def test_a_mask_that_is_too_wide_is_found(change):
    # With a bit less, the row for svc and brk takes b.cond and its neighbours too.
    changed = [
        replace(row, mask=0x7F000000, value=0x54000000) if row.name == "svc, brk" else row
        for row in rows("aarch64", "uprobe")
        if row.name != "b.cond"
    ]
    change("aarch64", "uprobe", changed)
    assert any(
        one.text.startswith("b.") and "svc, brk" in one.ours for one in verdict("aarch64", "uprobe").disagreements
    )


def test_a_length_that_is_wrong_is_found(change):
    changed = [replace(row, length=2) if row.name == "COMMON" else row for row in rows("riscv64", "pid")]
    change("riscv64", "pid", changed)
    assert any("2 bytes" in one.ours and "4 bytes" in one.theirs for one in verdict("riscv64", "pid").disagreements)


def test_an_instruction_run_out_of_line_where_it_should_be_emulated_is_found(change):
    changed = [replace(row, what=Otherwise.OUT_OF_LINE) if row.name == "JAL" else row for row in rows("riscv64", "pid")]
    change("riscv64", "pid", changed)
    (found,) = verdict("riscv64", "pid").disagreements
    assert found.ours == "ours, JAL, 4 bytes: out of line as neither relative nor a transfer"
    assert found.theirs == "capstone, 4 bytes: relative to the pc and a transfer of control"
    assert str(found).count("more") == 1


def test_a_row_that_is_shadowed_is_named(change):
    bl = next(row for row in rows("aarch64", "pid") if row.name == "BL")
    shadowed = replace(bl, name="bl again", mask=0xFFFF0000)
    change("aarch64", "pid", [*rows("aarch64", "pid")[:-1], shadowed, rows("aarch64", "pid")[-1]])
    found = verdict("aarch64", "pid")
    assert found.unreached == ("bl again",)
    assert not found.right
    assert any("row 'bl again' is never reached" in line for line in summary(found))


def test_claims_and_exemptions_name_rows_that_there_are():
    for isa, provider, name in some(tables._REFUSED):
        assert any(row.name == name and row.what is Otherwise.REFUSE for row in rows(isa, provider)), name
    for isa, listed in some(EXEMPTIONS.items()):
        for one in some(listed):
            names = {name for provider in one.providers for name in row_names(isa, provider)}
            assert set(one.rows) <= names, one


def test_an_exemption_that_nothing_needs_is_named(monkeypatch):
    idle = Exemption(("fbt",), ("ret",), 0xFFFF, 0x8082, frozenset({"c.jr"}), exemptions.Facts.CONTROL, "for nothing")
    monkeypatch.setitem(EXEMPTIONS, "riscv64", (*EXEMPTIONS["riscv64"], idle))
    native._counter.cache_clear()
    found = verdict("riscv64", "fbt")
    native._counter.cache_clear()
    assert found.unused == (idle,)
    assert not found.right


def test_an_exemption_holds_only_for_what_it_names(monkeypatch):
    changed = tuple(replace(one, names=frozenset({"prfum"})) if "prfm" in one.names else one
                    for one in EXEMPTIONS["aarch64"])  # fmt: skip
    monkeypatch.setitem(EXEMPTIONS, "aarch64", changed)
    assert any(one.text.startswith("prfm") for one in verdict("aarch64", "pid").disagreements)


def test_a_verdict_is_reported_as_text_and_as_data(classified):
    for judged in some(verdicts("riscv64", classified["riscv64"])):
        text = "\n".join(summary(judged))
        assert f"riscv64 {judged.provider}: " in text
        assert f"{len(judged.rows)} of {len(judged.rows)} rows reached" in text
        data = as_dict(judged)
        assert data["right"]
        assert sum(data["rows"].values()) == data["encodings"] == sum(data["doing"].values())
        assert set(data["doing"]) <= {doing.value for doing in Doing}


def test_finished_chunks_are_distinguished_by_what_they_depend_on(change):
    before = {isa: fingerprint(isa) for isa in SWEPT}
    assert len(set(before.values())) == len(SWEPT)
    change("aarch64", "pid", without("aarch64", "pid", "BLR"))
    assert fingerprint("aarch64") != before["aarch64"]
    assert fingerprint("riscv64") == before["riscv64"]


@pytest.mark.parametrize("isa", ["x86_64", "i386"])
def test_the_fingerprint_of_rules_that_are_code_is_that_of_all_their_modules(isa):
    said = {module.__name__ for module in MODULES[isa]}
    asked = [f"providers.fasttrap.{isa}", f"providers.uprobes.{isa}", f"emu.isa.{isa}.stub"]
    seen = set()
    while asked:
        name = asked.pop()
        if name in seen or not re.match(r"providers\.(x86|dis)|providers\..*86|emu\.isa\.\w*86\w*\.", name):
            continue
        seen.add(name)
        text = inspect.getsource(import_module(name))
        asked += re.findall(r"^from ([\w.]+) import", text, re.MULTILINE)
    # Rules about returns of functions and about exceptions are not decisions of an instruction.
    assert seen - said <= {"providers.fasttrap.x86_functions", f"emu.isa.{isa}.registers", f"emu.isa.{isa}.traps"}
    assert f"providers.fasttrap.{isa}" in seen
    assert "providers.uprobes.x86" in seen


def test_another_process_finds_the_same_fingerprint():
    program = "from trapline.lab.check.encodings.run import fingerprint; print(fingerprint('aarch64'))"
    found = subprocess.run([sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": "7"},
                           capture_output=True, text=True, check=True).stdout  # fmt: skip
    assert found.strip() == fingerprint("aarch64")


@pytest.mark.parametrize("isa", FORMS)
def test_the_ports_decide_what_their_tables_say(isa):
    # What stands before an instruction can make a port refuse it besides; nothing stands before these.
    for form in some(FORMS[isa].values()):
        for number in some(range(5, form.encodings, form.encodings // 1500 | 1)):
            word = form.word(number)
            code = word.to_bytes(form.size, "little")
            for provider, table in some(tables.tables(isa).items()):
                row = table[tables.row_of(table, word, form.size)]
                if provider == "uprobe":
                    found = uprobes.PORTS[isa].treat(Code(code, 0), Fidelity.EXACT)
                elif provider != "fbt":
                    fidelity = Fidelity.FREEBSD if ":" in provider else Fidelity.EXACT
                    found = fasttrap.PORTS[isa].treat(Code(code, 0), fidelity)
                else:
                    found = ISAS[isa].stub.decide(code, 0)
                assert found.rule is row
                if callable(row.what):
                    assert found.plan == row.what(Displaced(word, 0))
                elif row.what is Otherwise.REFUSE:
                    assert isinstance(found, Refused)
                else:
                    assert (found.code, found.length) == (code, row.length)
