"""Trapline's breakpoints beside a kernel's own kprobes."""

import pytest

from emu.isa import ISAS
from tests.trapline.linux_kernel.test_traced import every_kernel
from trapline.lab import oracle, oracle_refusals
from trapline.lab.oracle import Row


@every_kernel
def test_the_kernels_own_kprobes_have_the_same_hits(isa):
    rows = oracle.compare(ISAS[isa])
    assert len(rows) >= 5
    assert [row for row in rows if not row.agrees] == []
    assert sum(row.ours for row in rows) > 400


@every_kernel
def test_the_kernel_refuses_the_probes_that_we_refuse(isa):
    verdicts = oracle_refusals.refusals(ISAS[isa], kprobe_step=300, uprobe_step=600)
    assert [one for one in verdicts if not one.agrees] == []
    allowed = {one.kind: one.count for one in verdicts if one.ours == one.kernel == "allowed"}
    assert allowed["kprobe"] > 50
    assert allowed["uprobe"] > 400


@pytest.mark.parametrize(
    ("records", "same"),
    [([], True), ([(1,), (2,), (1,)], True), ([(1,), (1,)], True), ([(2,), (2,)], False), ([(3,)], False)],
)
def test_records_are_hits_of_ours_in_the_same_order(records, same):
    row = Row("f", kernel=3)
    for argument in (1, 2, 1):
        row.hit((argument,))
    row.compare(records)
    assert row.same_arguments is same
    assert row.agrees is same


def test_a_hit_that_the_kernel_says_it_missed_is_not_a_difference():
    assert Row("f", ours=3, kernel=2, missed=1).agrees
    assert not Row("f", ours=3, kernel=2).agrees
    assert not Row("f").agrees
