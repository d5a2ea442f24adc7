"""The effects of a firing: enablings in order, records, predicates, faults, exit."""

from __future__ import annotations

import pytest

from tests.trapline.d.support import compile_text
from tests.trapline.framework.support import Bench, trace
from trapline.dof import encode
from trapline.framework.base.device import DeviceError
from trapline.framework.base.program import ProbeDescription


def test_a_record_has_its_enabling_the_time_and_the_data():
    bench = Bench(trace("arg0 + arg4"))
    bench.guest.time = 0x1_2345_6789
    bench.fire(bench.f, 40, 0, 0, 0, 2)
    assert bench.records() == [(1, 0x1_2345_6789, bytes(4) + (42).to_bytes(8, "little"))]


def test_what_is_not_enabled_does_not_fire():
    bench = Bench(trace("arg0"))
    bench.fire(bench.g, 1)
    assert bench.records() == []


def test_enablings_run_in_the_order_of_the_program():
    bench = Bench(trace("1") + trace("2") + trace("3"))
    bench.fire()
    assert bench.numbers() == [1, 2, 3]


def test_a_predicate_that_is_false_leaves_nothing():
    bench = Bench("f:entry /arg0 > 5/ { trace((int64_t)arg0); }")
    for value in (1, 9, 5, 6):
        bench.fire(bench.f, value)
    assert bench.numbers() == [9, 6]


def test_the_first_enabling_arms_the_probe_and_the_last_disarms_it():
    bench = Bench()
    assert bench.provider.enabled == []
    one, two = bench.open(trace("1")), bench.open(trace("2"))
    assert bench.provider.enabled == [bench.f]
    one.close()
    assert bench.provider.enabled == [bench.f]
    two.close()
    assert bench.provider.enabled == []


def test_two_consumers_see_their_own_records():
    bench = Bench(trace("arg0"))
    other = bench.open(trace("arg0 * 2"))
    bench.fire(bench.f, 21)
    assert bench.numbers() == [21]
    assert bench.numbers(other) == [42]


def test_begin_and_end_fire_for_their_own_consumer():
    bench = Bench(trace("1", "BEGIN") + trace("2", "END"))
    other = bench.open(trace("7", "BEGIN") + trace("8", "END"))
    assert bench.numbers() == [1]
    bench.device.stop()
    assert bench.numbers() == [2]
    assert bench.numbers(other) == [7]


def test_after_exit_nothing_fires_but_end():
    bench = Bench("f:entry { exit(arg0); }" + trace("9", "END"))
    bench.fire(bench.f, 3)
    bench.fire(bench.f, 4)
    assert bench.device.status().exiting
    assert bench.guest.interrupts == 1
    bench.device.stop()
    records = bench.records()
    assert [epid for epid, _, _ in records] == [1, 2]
    assert records[0][2] == (3).to_bytes(4, "little")


def test_an_exit_in_begin_keeps_later_clauses_of_begin_from_running():
    bench = Bench("BEGIN { exit(0); }" + trace("1", "BEGIN"))
    assert [epid for epid, _, _ in bench.records()] == [1]
    bench.fire()
    assert bench.records() == []


def test_a_fault_throws_the_record_away_and_fires_error_with_what_happened():
    error = "ERROR { trace(arg1); trace(arg2); trace(arg3); trace(arg4); trace(arg5); }"
    bench = Bench("f:entry { trace(arg0); trace(*(int64_t *)8); trace(arg1); }" + error)
    bench.fire(bench.f, 1)
    ((epid, _, data),) = bench.records()
    assert epid == 2
    values = [int.from_bytes(data[4 + 8 * n : 12 + 8 * n], "little") for n in range(5)]
    assert values == [1, 2, 16, 1, 8]  # enabling, action, DIF offset, BADADDR, the address
    assert bench.device.status().errors == 1


def test_a_fault_in_a_predicate_is_that_of_action_0():
    bench = Bench("f:entry /(*(int64_t *)8)/ { trace(1); } ERROR { trace(arg2); trace(arg4); }")
    bench.fire()
    ((_, _, data),) = bench.records()
    assert data[4:] == (0).to_bytes(8, "little") + (1).to_bytes(8, "little")


def test_a_fault_in_error_is_counted_and_goes_no_further():
    bench = Bench("f:entry { trace(*(int64_t *)8); } ERROR { trace(*(int64_t *)16); }")
    bench.fire()
    assert bench.records() == []
    assert bench.device.status().dblerrors == 1


@pytest.mark.parametrize(
    ("expression", "code"),
    [("1 / zero", 4), ("*(int64_t *)8", 1), ("(int64_t)alloca(1 << 30)", 5)],
)
def test_faults_have_their_codes(expression, code):
    bench = Bench(f"int64_t zero; f:entry {{ trace((int64_t)({expression})); }} ERROR {{ trace(arg4); }}")
    bench.fire()
    assert bench.numbers() == [code]


def test_variables_changed_before_a_fault_stay_changed():
    bench = Bench("int64_t n; f:entry { n++; trace(*(int64_t *)8); } g:entry { trace(n); }")
    bench.fire()
    bench.fire()
    bench.fire(bench.g)
    assert bench.numbers() == [2]


def test_a_refused_program_enables_nothing():
    bench = Bench()
    program = compile_text("f:entry { trace(1); } g:entry { trace(2); }")
    first, second = program.ecbs
    broken = second.actions[0].difo.__class__(code=(0xFF000000,))
    action = second.actions[0].__class__(second.actions[0].kind, broken)
    with pytest.raises(DeviceError, match="invalid opcode"):
        bench.device.enable(encode(program.__class__((first, second.__class__(second.probe, None, (action,))))))
    assert bench.provider.enabled == []


def test_destructive_actions_need_the_option():
    bench = Bench()
    bench.device.enable(encode(compile_text("f:entry { stop(); }")))
    with pytest.raises(DeviceError) as caught:
        bench.device.go()
    assert caught.value.errno_name == "EACCES"
    bench.device.set_option("destructive", 0)  # to be set is enough: -w has no value
    bench.device.go()


def test_the_number_of_matches_is_reported_for_each_clause():
    bench = Bench()
    program = compile_text("test:::entry { } f:entry { } nosuch { }")
    assert list(bench.device.enable(encode(program))) == [2, 1, 0]


def test_a_provider_in_use_cannot_leave():
    bench = Bench(trace("1"))
    with pytest.raises(ValueError, match="f:entry is enabled"):
        bench.dtrace.unregister(bench.provider)
    bench.device.close()
    bench.dtrace.unregister(bench.provider)
    assert sorted(bench.provider.destroyed) == [bench.f, bench.g]
    assert bench.dtrace.match(ProbeDescription("test")) == []


@pytest.mark.parametrize("name", ["test", "", "9p", "p9", "a b"])
def test_a_provider_needs_a_name_of_its_own(name):
    from tests.support.fake_guest import FakeProvider

    with pytest.raises(ValueError, match="provider"):
        FakeProvider(Bench().dtrace, name)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        (("test", "", "", ""), ["f:entry", "g:entry"]),
        (("", "", "f", ""), ["f:entry"]),
        (("", "", "[fg]", ""), ["f:entry", "g:entry"]),
        (("", "", "[!f]", "entry"), ["g:entry"]),
        (("t*t", "m?d", "*", "e*y"), ["f:entry", "g:entry"]),
        (("dtrace", "", "", "BEGIN"), [":BEGIN"]),
        (("test", "", "h", ""), []),
    ],
)
def test_probes_match_by_all_their_names(pattern, found):
    matched = Bench().dtrace.match(ProbeDescription(*pattern))
    assert [f"{probe.function}:{probe.name}" for probe in matched] == found


def test_four_empty_fields_leave_out_probes_without_a_function():
    found = Bench().dtrace.match(ProbeDescription())
    assert [probe.function for probe in found] == ["f", "g"]


def test_the_stack_of_an_anchored_probe_begins_with_the_caller():
    bench = Bench("f:entry { stack(3); trace(caller); trace((int64_t)stackdepth); }")
    bench.guest.stack = [0xFFFF_FFFF_8000_0001, 0xFFFF_FFFF_8000_0002, 0xFFFF_FFFF_8000_0003]
    bench.fire()
    ((_, _, data),) = bench.records()
    words = [int.from_bytes(data[4 + 8 * n : 12 + 8 * n], "little") for n in range(5)]
    assert words == [0xFFFF_FFFF_8000_0002, 0xFFFF_FFFF_8000_0003, 0, 0xFFFF_FFFF_8000_0002, 2]


def test_strings_are_recorded_up_to_their_nul_and_padded():
    bench = Bench("f:entry { trace(execname); }", strsize=16)
    bench.fire()
    assert bench.records()[0][2][4:] == b"sh".ljust(16, b"\0")


def test_the_thread_is_asked_once_for_an_enabling():
    bench = Bench("f:entry /pid == 42/ { trace(execname); trace(tid); }")
    bench.fire()
    assert bench.guest.thread_reads == 1
