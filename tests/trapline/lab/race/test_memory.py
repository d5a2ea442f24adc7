"""Histories of code: what a fetch may return, and which histories are the same."""

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.isa import ISAS
from trapline.lab.race.memory import CodeView, Content, canonical
from trapline.lab.race.probe_names import find


def fetched(isa, name, *contents):
    patch = find(ISAS[isa], name)
    history = tuple(Content(page, bytes.fromhex(data)) for page, data in contents)
    return {fetch.code.hex(): fetch.settled for fetch in CodeView(patch).fetches(history, patch.site)}


def test_x86_mixes_bytes():
    name = "code:0f1f440000c3:0:e900010000"
    found = fetched("x86_64", name, (0, "0f1f440000"), (0, "e900010000"))
    assert "e91f440000" in found
    assert all(found.values())


def test_pages_are_not_mixed():
    name = "code:0f1f440000c3:0:e900010000"
    assert set(fetched("x86_64", name, (0, "0f1f440000"), (1, "e900010000"))) == {"0f1f440000", "e900010000"}


def test_riscv_mixes_halves_of_a_word_only_where_it_is_not_aligned():
    aligned = "code:13000000828000000000:0:6f000010"
    across = "code:01001300000082800000:2:6f000010"
    assert set(fetched("riscv64", aligned, (0, "13000000"), (0, "6f000010"))) == {"13000000", "6f000010"}
    assert len(fetched("riscv64", across, (0, "13000000"), (0, "6f000010"))) > 2


@pytest.mark.parametrize(("old", "settled"), [("1f2003d5", True), ("fd7bbfa9", False)])
def test_arm_defines_only_the_listed_words(old, settled):
    found = fetched("aarch64", f"code:{old}c0035fd6:0:40000014", (0, old), (0, "40000014"))
    assert set(found.values()) == {settled}


def values(history, start, cuts):
    """What a fetch may return of contents: by page, all combinations of the blocks."""
    found = set()
    for page in {content.page for content in history[start:]}:
        blocks = [{content.data[a:b] for content in history[start:] if content.page == page} for a, b in pairwise(cuts)]
        found |= {(page, b"".join(parts)) for parts in product(*blocks)}
    return found


@given(
    st.lists(st.tuples(st.integers(0, 1), st.binary(min_size=3, max_size=3)), min_size=1, max_size=7),
    st.sets(st.integers(0, 6), min_size=1),
    st.sampled_from([(0, 3), (0, 1, 3), (0, 1, 2, 3)]),
)
def test_a_canonical_history_offers_the_same_fetches(contents, marks, cuts):
    history = tuple(Content(page, data) for page, data in sorted(contents, key=lambda one: one[0]))
    marks = frozenset({mark % len(history) for mark in marks})
    short, places = canonical(history, marks, cuts)
    assert short[-1] == history[-1]
    for mark in marks:
        assert values(short, places[mark], cuts) == values(history, mark, cuts)
    assert canonical(short, frozenset(places.values()), cuts)[0] == short
