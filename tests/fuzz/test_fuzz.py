"""Hostile input is refused in words: some cases of each class, and all that were ever found."""

import os
import time

import pytest

from tests.fuzz import runner
from tests.fuzz.case import Fuzzer, kept
from tests.fuzz.inputs import FUZZERS
from tests.support.some import some


@pytest.mark.parametrize("name", FUZZERS)
def test_no_case_ends_in_a_traceback_a_hang_or_a_crash(name):
    fuzzer = FUZZERS[name]
    tally = runner.run(fuzzer, runner.FromNumbers(fuzzer, range(fuzzer.quick)))
    assert tally.cases == fuzzer.quick
    assert [f"{one.number}: {one.why}" for one in tally.findings] == []
    assert len(tally.outcomes) > 1, "all cases end alike: they try nothing"


@pytest.mark.parametrize("name", FUZZERS)
def test_a_case_ends_alone_as_it_ends_among_others(name):
    fuzzer = FUZZERS[name]
    cases = runner.FromNumbers(fuzzer, range(fuzzer.compared))
    assert runner.outcomes(fuzzer, cases, alone=True) == runner.outcomes(fuzzer, cases, alone=False)


@pytest.mark.parametrize("name", FUZZERS)
def test_a_fault_that_was_found_once_does_not_return(name):
    found = kept(name)
    tally = runner.run(FUZZERS[name], [(one.number, one.case) for one in found])
    assert [f"{one.number}: {one.why}" for one in tally.findings] == []


class Tester(Fuzzer):
    """Does what a case says."""

    name = "tester"
    expected = (ValueError,)
    seconds = 0.6
    patience = 3
    megabytes = 50
    left = False

    def make(self, random):
        return random.choice([b"well", b"refused"])

    def run(self, case):
        match case:
            case b"refused":
                raise ValueError("no")
            case b"two lines":
                raise ValueError("no\nno")
            case b"leave":
                self.left = True
            case b"left":
                assert not self.left, "left behind"
            case b"traceback":
                raise KeyError("rdi")
            case b"hang":
                while True:
                    pass
            case b"sleep":
                time.sleep(60)
            case b"abort":
                os.abort()
            case b"exit":
                os._exit(3)
            case b"memory":
                self.held = bytearray(os.urandom(1 << 20) * 200)
                time.sleep(60)
        return "ran"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("case", "why"),
    [
        (b"traceback", "KeyError: 'rdi'"),
        (b"two lines", "AssertionError: the message is not one line"),
        (b"hang", "it takes longer than 0.6 s"),
        (b"sleep", "it takes longer than 0.6 s"),
        (b"abort", "the process was ended by SIGABRT"),
        (b"exit", "the process exited with status 3"),
        (b"memory", "it takes more than 50 MiB"),
    ],
)
def test_the_runner_finds_a_case_and_continues_after_it(case, why):
    cases = [(0, b"well"), (1, case), (2, b"refused"), (3, b"well")]
    tally = runner.run(Tester(), cases)
    assert tally.cases == 4
    assert [(one.number, one.case) for one in tally.findings] == [(1, case)]
    assert tally.findings[0].why.startswith(why)
    assert tally.outcomes == {"ran": 2, "refused": 1, "found": 1}


def test_a_case_that_fails_only_after_others_is_found():
    cases = [(0, b"leave"), (1, b"well"), (2, b"left"), (3, b"well")]
    tally = runner.run(Tester(), cases)
    assert tally.cases == 4
    assert [(one.number, one.why[:48]) for one in tally.findings] == [
        (2, "only after other cases: AssertionError: left beh")
    ]


def test_a_number_makes_the_same_case_everywhere():
    assert all(fuzzer.case(7) == fuzzer.case(7) for fuzzer in some(FUZZERS.values()))
