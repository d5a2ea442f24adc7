"""A part of `make toolchains`: each ISA, compiler and linker once; the saved totals of all."""

import json

import pytest

from benchmarks import toolchains
from benchmarks.toolchains import Combination
from tests.support.some import some

PART = (
    Combination("x86_64", "gcc", "bfd", "-O2", "static"),
    Combination("x86_64", "clang", "lld", "-Os", "pie"),
    Combination("x86_64", "rustc", "lld", "-O2", "pie"),
    Combination("x86_64", "gcc", "mold", "-O0", "static-pie"),
    Combination("aarch64", "clang", "lld", "-O2", "shared"),
    Combination("riscv64", "gcc", "bfd", "-O2", "static"),
    Combination("riscv64", "gcc", "mold", "-O2", "pie"),
    Combination("i386", "gcc", "gold", "-O2", "shared"),
    Combination("aarch64", "go", "", "", "static"),
)


@pytest.mark.parametrize("combination", PART, ids=lambda one: one.name)
def test_probes_count_what_the_program_counts(combination):
    row = toolchains.one(*combination)
    if "not_built" in row:
        pytest.skip(row["not_built"])
    assert row["differences"] == []
    assert row["probes"] > 10
    assert row["fired"] > 100


def test_all_of_the_matrix_was_the_same():
    saved = json.loads(toolchains.SAVED.read_text("utf-8"))
    assert saved["different"] == {}
    assert saved["programs"] + len(saved["not_built"]) == len(list(toolchains.combinations()))
    for name in some([one.name for one in PART]):
        assert name not in saved["not_built"]


def test_a_wrong_count_is_told():
    wanted = toolchains.expected("called leaf 29\ncalled helper 9\ncalled helper 9\nmore\n")
    assert wanted == {"leaf": 29, "helper": 18}
    assert list(toolchains._wrong_counts("pid entry", wanted, {"leaf": 29, "helper": 9})) == [
        "pid entry of helper: 9, not 18"
    ]
