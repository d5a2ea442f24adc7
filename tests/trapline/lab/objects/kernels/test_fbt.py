"""The user's compiled FBT against the package's rules (testbins/objects/scanner.c)."""

import re

import pytest

from emu.elf.image import Image
from emu.guest.kernel.boot.images import built
from emu.isa import ISAS
from trapline.lab.objects.check import check_objects
from trapline.lab.objects.kernels.fbt_check import FbtGlue
from trapline.lab.objects.report import as_html, as_json, as_text
from trapline.lab.objects.request import Request
from trapline.lab.objects.user_code import ObjectError

_EVERY_ISA = pytest.mark.parametrize("isa", ISAS.values(), ids=ISAS)


def _check(isa, name, function, **options):
    kernel = Image(built(isa) / "kernel")
    request = Request(kernel, function)
    return check_objects([built(isa) / "objects" / name], FbtGlue, request, isa, **options)


@_EVERY_ISA
def test_a_right_scanner_is_the_same(isa):
    report = _check(isa, "scanner.o", "sys_[a-e]*")
    assert report.same, as_text(report)
    assert report.counts["functions"] >= 10
    assert report.counts["sites patched"] == report.counts["firings"] == report.counts["sites in both"] >= 20
    assert report.coverage[0].file == "scanner.c"
    assert report.coverage[0].percent > 80


@_EVERY_ISA
def test_the_mistakes_of_a_wrong_scanner_are_found(isa):
    report = _check(isa, "scanner-buggy.o", "sys_[ac]*")
    assert {"only ours", "only theirs"} <= {one.kind for one in report.differences}
    late = next(one for one in report.differences if one.kind == "only theirs")
    assert late.probe == "entry"
    assert "our scanner has the entry at" in late.what
    found = {one.what for one in report.accesses}
    assert found == {"read out of bounds", "write out of bounds", "read of uninitialised memory"}
    assert all(re.match(r"scanner\.c:\d+ ", one.where) for one in report.accesses)


@pytest.mark.parametrize("isa", [one for one in ISAS.values() if one.registers.link], ids=lambda isa: isa.name)
def test_displaced_instructions_are_executed_by_the_users_handler(isa):
    right, wrong = (_check(isa, name, "sys_[ac]*") for name in ("scanner.o", "scanner-buggy.o"))
    assert right.counts["displaced instructions"] >= 4
    assert not any(one.kind == "displaced" for one in right.differences)
    found = [one for one in wrong.differences if one.kind == "displaced"]
    assert "state 0: pc is 0x" in found[0].what
    assert "on the CPU 0x" in found[0].what


@_EVERY_ISA
def test_faults_in_a_probe_and_the_list_of_handlers_are_checked(isa):
    folder = built(isa) / "objects"

    def failures(name):
        request = Request(Image(built(isa) / "kernel"), "sys_access")
        return check_objects([folder / "scanner.o", folder / name], FbtGlue, request, isa).failures

    assert not failures("subr.o")
    removed, *faults = failures("subr-buggy.o")
    assert "after dtrace_invop_remove(fbt_invop) dtrace_invop returns" in removed.what
    assert faults
    assert all("while DTrace expects faults: the saved pc is 0x" in one.what for one in faults)
    assert not any("breakpoint" in one.what for one in faults)


def test_reports_in_all_forms_have_the_same_content():
    report = _check(ISAS["x86_64"], "scanner-buggy.o", "sys_acc*")
    place = report.differences[0].place
    assert all(place.rsplit("+", 1)[0] in form(report) for form in (as_text, as_json, as_html))


def test_accesses_need_not_be_watched():
    report = _check(ISAS["riscv64"], "scanner-buggy.o", "sys_acc*", checked=False)
    assert not report.accesses
    assert not report.coverage
    assert any("--no-memory" in one for one in report.omitted)


# Shrinking takes seconds, and is the same on every ISA.
@pytest.mark.parametrize("isa", [ISAS["x86_64"]], ids=lambda isa: isa.name)
def test_made_functions_find_mistakes_and_give_their_bytes(isa, monkeypatch):
    pytest.importorskip("hypothesis")
    monkeypatch.setattr("trapline.lab.objects.kernels.fuzz._LIMIT", 2_000)
    kernel = Image(built(isa) / "kernel")

    def findings(name):
        request = Request(kernel, "sys_access", fuzz=12)
        report = check_objects([built(isa) / "objects" / name], FbtGlue, request, isa)
        assert report.counts["made functions"] >= 5
        return [one for one in report.failures if one.subject.startswith("a made function (")]

    found = findings("scanner-buggy.o")
    assert found
    assert all(0 < len(one.code) <= 256 for one in found)
    # Each is found again by its line.
    for one in found:
        given = Request(kernel, given=bytes.fromhex(one.what.rpartition("--bytes ")[2]))
        again = check_objects([built(isa) / "objects" / "scanner-buggy.o"], FbtGlue, given, isa)
        assert (one.what.partition(";")[0], one.where) in [(each.what, each.where) for each in again.failures]
        assert again.counts["made functions"] == 1
    # The endless loop is for functions of up to three bytes.
    assert any("had not returned" in one.what and len(one.code) == 1 for one in found)
    assert not any("by theirs" in one.what or "returned" in one.what for one in findings("scanner.o"))


def test_all_missing_externs_are_in_one_message():
    class Poor(FbtGlue):
        @classmethod
        def externs(cls):
            return {"strcmp": super().externs()["strcmp"]}

    with pytest.raises(ObjectError) as caught:
        check_objects([built(ISAS["x86_64"]) / "objects" / "scanner.o"], Poor, Request())
    for name in ("fbt_excluded", "dtrace_probe_create", "dtrace_probe", "dtrace_instr_size", "kmem_alloc"):
        assert f"{name} (used by scanner.o)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_entry_point_that_is_missing_is_named():
    path = built(ISAS["i386"]) / "objects" / "links_other.o"
    with pytest.raises(ObjectError, match="FbtGlue calls fbt_provide_module_function, which no object defines"):
        check_objects([path], FbtGlue, Request())


def test_an_endless_scan_is_a_failure_of_one_line(monkeypatch):
    monkeypatch.setattr("trapline.lab.objects.user_code.LIMIT", 20_000)
    isa = ISAS["x86_64"]
    kernel = Image(built(isa) / "kernel")
    one = next(symbol for symbol in kernel.functions if symbol.name == "sys_access")
    kernel.__dict__["symbols"] = (one._replace(size=1),)
    report = check_objects([built(isa) / "objects" / "scanner-buggy.o"], FbtGlue, Request(kernel), isa)
    assert "had not returned after" in report.failures[0].what
    assert report.failures[0].subject == "sys_access"
