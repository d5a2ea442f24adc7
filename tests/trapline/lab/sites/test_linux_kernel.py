"""The probe sites of Linux kernels' files."""

import pytest

from tests.emu.guest.linux_kernel.small_kernels import BASES, small_kernel
from tests.support.command import run_trapline
from trapline.lab.sites.fbt import SitesError, sites
from trapline.lab.sites.instructions import user_sites
from trapline.lab.sites.linux_kernel import BLACKLISTED, NO_ENTRY, TAIL_CALL

ENTRIES = {"riscv64": 8, "aarch64": 8, "x86_64": 0}
RETURNS = {"riscv64": 12, "aarch64": 16, "x86_64": 11}


@pytest.fixture(params=list(BASES))
def isa(request):
    return request.param


@pytest.fixture
def path(tmp_path, isa):
    place = tmp_path / "vmlinuz"
    place.write_bytes(small_kernel(isa))
    return place


def test_entries_and_returns_are_where_the_running_kernel_has_them(path, isa):
    (found,) = sites(path, function="_stext")
    assert [(one.probe, one.instruction.offset) for one in found.sites] == [
        ("entry", ENTRIES[isa]),
        ("return", RETURNS[isa]),
    ]
    assert all(one.invop is None and one.decision.plan for one in found.sites)


def test_a_tail_call_has_no_return_probe(path):
    (found,) = sites(path, function="tail_called")
    assert [one.probe for one in found.sites] == ["entry"]
    assert [one.rule for one in found.passed_over] == [TAIL_CALL]


def test_refusals_have_their_rules(path):
    refusals = {one.name: one.refusal for one in sites(path)}
    assert refusals["blacklisted"] is BLACKLISTED
    assert refusals["without_plan"] is NO_ENTRY
    assert refusals["_stext"] is None


def test_kinst_leaves_the_inside_of_ftraces_pad_alone(path, isa):
    found = user_sites(path, function="_stext", provider="kinst")
    assert found[0].what == "emulated"
    inside = [one for one in found if "ftrace writes the pad as a whole" in one.how]
    assert [one.offset for one in inside] == ([] if isa == "x86_64" else [4])


def test_probes_of_programs_are_refused(path):
    with pytest.raises(SitesError, match="a kernel has probes of fbt and kinst, not of pid"):
        user_sites(path, provider="pid")


def test_the_command_says_what_text_it_has_read(path, isa):
    shown = run_trapline(["sites", str(path), "--isa", isa])
    assert shown.returncode == 0
    assert "4 functions: 2 with probes (2 entry sites, 1 return site), 2 without" in shown.stdout
    assert "alternatives, jump labels and static calls are not applied" in shown.stderr


def test_a_check_tries_the_sites(path, isa):
    shown = run_trapline(["check", str(path), "--isa", isa, "--states", "4"])
    assert shown.returncode == 0, shown.stdout
    assert "3  agreed" in shown.stdout
    assert "was not run: a Linux kernel is run by" in shown.stdout


def test_a_check_of_programs_probes_is_refused(path):
    shown = run_trapline(["check", str(path), "--provider", "uprobe"])
    assert shown.returncode == 2
    assert "a kernel has probes of fbt, not of uprobe" in shown.stderr
