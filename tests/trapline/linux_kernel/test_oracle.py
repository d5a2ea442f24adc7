"""Trapline's probes beside a kernel's own."""

import pytest

from emu.elf.image import Image
from emu.guest.linux_kernel.files import store
from emu.isa import ISAS
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.lab.oracle import kprobes, refusals, uprobes
from trapline.lab.oracle import rows as oracle_rows
from trapline.lab.oracle.instructions import SLOT, SlotFile, ask, different, written
from trapline.lab.oracle.rows import Row, TraceLine
from trapline.support.own_files import own_files

_TRACE = b"""# tracer: nop
              ls-126     [000] d....     2.393562: e1: (0x4023 <- 0x4000) a=0x1 text="two
lines" comm="ls"
 my shell (2)-7       [000] .....    12.402023: vfs_read: (vfs_read+0x4/0x330) a0=0xffff m=(fault)
"""


@every_kernel
def test_the_kernels_own_kprobes_have_the_same_hits_and_values(isa):
    rows = kprobes.compare(ISAS[isa])
    assert len(rows) >= 5
    assert [row for row in rows if not row.agrees] == []
    assert sum(row.ours for row in rows) > 400


@every_kernel
def test_the_kernels_own_kretprobes_have_the_same_results(isa):
    rows = kprobes.compare_returns(ISAS[isa])
    assert len(rows) >= 4
    assert [row for row in rows if not row.agrees] == []


@every_kernel
def test_the_kernels_own_uprobes_have_the_same_hits_and_values(isa):
    rows = uprobes.compare_programs(ISAS[isa])
    assert len(rows) >= 20
    assert [row for row in rows if not row.agrees] == []
    assert sum(row.values for row in rows) > 2000


@every_kernel
def test_the_kernels_own_uretprobes_have_the_same_results(isa):
    rows = uprobes.compare_program_returns(ISAS[isa])
    assert len(rows) >= 15
    assert [row for row in rows if not row.agrees] == []
    assert sum(row.values for row in rows) > 800


@every_kernel
def test_the_kernel_refuses_the_probes_that_we_refuse(isa):
    verdicts = refusals.refusals(ISAS[isa], kprobe_step=300, uprobe_step=600)
    assert [one for one in verdicts if not one.agrees] == []
    allowed = {one.kind: one.count for one in verdicts if one.ours == one.kernel == "allowed"}
    assert allowed["kprobe"] > 50
    assert allowed["uprobe"] > 400


def test_the_kernels_trace_and_its_profile_are_read():
    profile = b"  vfs_read      10     2\n  /bin/busybox e1      7\n"
    shown = oracle_rows.read(b"noise\n== profile\n" + profile + b"== trace\n" + _TRACE + b"== end\n")
    assert shown.counts == {"vfs_read": (10, 2), "e1": (7, 0)}
    assert shown.records == [
        TraceLine("e1", 'a=0x1 text="two\nlines" comm="ls"'),
        TraceLine("vfs_read", "a0=0xffff m=(fault)"),
    ]


@pytest.mark.parametrize(
    ("records", "same"),
    [([], True), ([1, 2, 1], True), ([1, 1], True), ([2, 2], False), ([3], False)],
)
def test_records_are_hits_of_ours_in_the_same_order(records, same):
    row = Row("f", kernel=3)
    for argument in (1, 2, 1):
        row.hit(f"a={argument}")
    row.compare([f"a={argument}" for argument in records])
    assert row.same_values is same
    assert row.agrees is same


def test_a_hit_that_the_kernel_says_it_missed_is_not_a_difference():
    assert Row("f", ours=3, kernel=2, missed=1).agrees
    assert not Row("f", ours=3, kernel=2).agrees
    assert not Row("f").agrees
    assert Row("f", "kretprobe").agrees  # refused by the kernel


@every_kernel
def test_a_kernel_and_we_allow_the_same_uprobes(isa):
    program = store.stored(ISAS[isa]).busybox
    # These bytes are anything, and not only whole instructions.
    found = ask(ISAS[isa], SlotFile(None, "bin/busybox", program.read_bytes()), range(0x1000, 0x1014))
    assert sum(one.count for one in found) == 20
    assert all(one.agrees for one in found), found


def test_each_instruction_is_asked_for_once(tmp_path):
    (program,) = own_files("zoo", ISAS["aarch64"])
    instructions = different(ISAS["aarch64"], [Image(program)] * 2)
    assert bytes.fromhex("c0035fd6") in instructions  # ret
    assert instructions == sorted(set(instructions))
    slotted = written(tmp_path / "root", instructions)
    assert (tmp_path / "root" / slotted.name).read_bytes() == slotted.data
    assert [slotted.data[at : at + 4] for at in range(0, len(slotted.data), SLOT)] == instructions
