"""`trapline uprobe --cpus`: the lines of all CPUs come in the order of their times."""

import re
from collections import Counter

import pytest
from click.testing import CliRunner

from emu.isa import ISAS
from trapline.cli import main
from trapline.ftrace.output import Merging, event, prefix, time_of

CPUS = ("--cpus", "3", "--seed", "7")
LINE = re.compile(r"\[(\d+)\] d\.\.\.\. +(\d+\.\d+): thread_add:")


@pytest.mark.parametrize("isa", ISAS)
def test_a_threaded_program_is_traced_on_several_cpus(isa):
    program = ("--isa", isa, *CPUS, "-c", "testbins:zoo threads")
    traced = CliRunner().invoke(main, ["uprobe", *program, "-H", "p:testbins:zoo:thread_add"])
    assert "#P:3\n" in traced.stdout
    found = LINE.findall(traced.stdout)
    times = [time for _, time in found]
    assert times == sorted(times)
    counted = CliRunner().invoke(
        main, ["dtrace", *program, "-qn", "pid$target::thread_add:entry { @[cpu] = count(); }"]
    )
    pairs = re.findall(r"^ +(\d) +(\d+)$", counted.stdout, re.MULTILINE)
    assert Counter(int(cpu) for cpu, _ in found) == {int(cpu): int(count) for cpu, count in pairs}
    assert len(pairs) == 3


def line(cpu, time, text="f"):
    return prefix("a [b] name", 7, cpu, time) + event(text, 16, None, [("s", '"x\ny"')]) + "\n"


def test_a_line_waits_for_the_cpus_that_are_behind():
    reached, written = [1000], []
    merging = Merging(written.append, lambda: reached[0])
    assert time_of(line(1, 2_000_000_123_000)) == 2_000_000_123
    assert time_of(" =>  <00>\n") is None
    merging.write(line(0, 9000) + line(0, 12_000))
    assert written == []
    merging.write(line(1, 4000))
    reached[0] = 12_000
    merging.write(line(1, 14_000))
    assert written == [line(1, 4000), line(0, 9000)]
    merging.finish()
    assert written[2:] == [line(0, 12_000), line(1, 14_000)]


@pytest.mark.parametrize("number", ["0", "9", "x"])
def test_a_wrong_number_of_cpus_is_refused(number):
    done = CliRunner().invoke(main, ["uprobe", "--cpus", number, "p:testbins:zoo:main"])
    assert done.exit_code == 2
    assert "--cpus" in done.output
