"""Every loss is counted: every hit is a record, a false predicate, or a reported drop."""

import struct

from hypothesis import given
from hypothesis import strategies as st

from tests.trapline.framework.support import Bench

# An argument: the probe fires with it; None: the buffers are emptied.
ACTIONS = st.lists(st.integers(0, 99) | st.none(), max_size=120)


def counted(bench):
    """Return the sum of an aggregation since the last snapshot, and its drops."""
    snapshot = bench.device.aggregation_snapshot(0)
    return sum(struct.unpack_from("<q", entry, len(entry) - 8)[0] for entry in snapshot.entries), snapshot.drops


@given(ACTIONS, st.integers(16, 400), st.sampled_from([1, 2, 4, 8, 40]))
def test_records_and_drops_are_all_that_passed_the_predicate(actions, bufsize, width):
    text = {1: "(char)arg0", 2: "(short)arg0", 4: "(int)arg0", 8: "arg0", 40: 'strjoin("x", lltostr(arg0))'}[width]
    bench = Bench(f"f:entry /arg0 % 3 != 0/ {{ trace({text}); }}", bufsize=max(64, bufsize), strsize=40)
    fired = passed = seen = drops = 0
    for action in [*actions, None]:
        if action is None:
            snapshot = bench.device.buffer_snapshot(0)
            drops += snapshot.drops
            seen += sum(1 for epid in epids(bench, snapshot.data) if epid)
        else:
            fired += 1
            passed += action % 3 != 0
            bench.fire(bench.f, action)
    # A buffer without room for the string that strjoin() makes is a fault: scratch space lies in it.
    lost = drops + bench.device.status().errors
    # Space is reserved before the predicate is asked (dtrace_probe() of FreeBSD's dtrace.c): a full buffer drops both.
    assert passed <= seen + lost <= (fired if lost else passed)
    assert seen <= passed


def epids(bench, data):
    """Yield the EPIDs of a buffer, 0 for padding."""
    at = 0
    while at + 4 <= len(data):
        (epid,) = struct.unpack_from("<I", data, at)
        yield epid
        at += bench.device.enabled_probe(epid).size if epid else 4


@given(ACTIONS, st.integers(64, 2000))
def test_an_aggregation_counts_every_hit_or_says_how_many_it_dropped(actions, aggsize):
    bench = Bench("f:entry { @[arg0] = count(); }", aggsize=aggsize)
    fired = total = drops = 0
    for action in [*actions, None]:
        if action is None:
            found, lost = counted(bench)
            total, drops = total + found, drops + lost
        else:
            fired += 1
            bench.fire(bench.f, action)
    assert total + drops == fired


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(256, 4096))
def test_a_dynamic_variable_is_kept_or_its_drop_is_counted(keys, dynvarsize):
    bench = Bench("f:entry { x[arg0] = 1; } g:entry /x[arg0] == 1/ { trace(arg0); }", dynvarsize=dynvarsize)
    for key in keys:
        bench.fire(bench.f, key)
    for key in set(keys):
        bench.fire(bench.g, key)
    kept = len(bench.numbers())
    status = bench.device.status()
    lost = status.dyndrops + status.dyndrops_dirty + status.dyndrops_rinsing
    assert kept <= len(set(keys))
    assert kept == len(set(keys)) if not lost else lost >= len(set(keys)) - kept


@given(st.lists(st.integers(0, 99), max_size=60), st.integers(1, 3), st.integers(64, 512))
def test_speculations_are_committed_discarded_or_counted(arguments, nspec, specsize):
    bench = Bench(
        "f:entry { self->s = speculation(); } f:entry /self->s/ { speculate(self->s); trace(arg0); }"
        "f:entry /self->s && arg0 % 2/ { commit(self->s); self->s = 0; }"
        "f:entry /self->s/ { discard(self->s); self->s = 0; }",
        nspec=nspec,
        specsize=specsize,
    )
    for argument in arguments:
        bench.fire(bench.f, argument)
    status = bench.device.status()
    seen = len(bench.numbers())
    assert seen + status.specdrops + status.specdrops_unavail + status.specdrops_busy >= sum(a % 2 for a in arguments)
    assert seen <= sum(a % 2 for a in arguments)


def test_many_enablings_of_one_probe_run_in_order_and_are_taken_out_at_once():
    bench = Bench(",".join(["f:entry"] * 3_000) + " { n++; } f:entry { trace(n); }")
    bench.fire(bench.f)
    assert bench.numbers() == [3_000]
    bench.device.close()
    bench.fire(bench.f)
