"""`trapline check --object`: sweeps, single tries, and wrong usage."""

import json

import pytest
from click.testing import CliRunner

from trapline.commands.check import check_command

XOL = ("--object", "testbins:xol.o", "--glue", "linux-uprobes", "--isa", "i386")


def run(*words):
    return CliRunner().invoke(check_command, words)


def test_a_sweep_of_x86_is_kept_in_a_file_and_goes_on(tmp_path):
    kept, report = tmp_path / "kept.json", tmp_path / "report.json"
    words = (*XOL, "--sweep", "--bound", "0", "--sample", "500", "--results", str(kept), "--report", str(report))
    for done in (500, 1000):
        result = run(*words)
        assert result.exit_code == 1
        assert f"{done:,} encodings, " in result.output
        assert "enumerated: 18,677,760 encodings: no prefix, " in result.output
        found = json.loads(report.read_text())
        assert found["counts"]["encodings"] == done
        assert found["notes"][0].startswith("enumerated: ")
    other = run(*XOL, "--sweep", "--bound", "1", "--results", str(kept))
    assert other.exit_code == 2
    assert "results of other objects or rules" in other.output


def test_an_instruction_is_tried_alone():
    right, wrong = (run("--object", f"testbins:{name}.o", "--glue", "linux-uprobes", "--isa", "x86_64", "--bytes", "9f")
                    for name in ("decoder", "decoder-buggy"))  # fmt: skip
    assert right.exit_code == 0, right.output
    assert wrong.exit_code == 1
    assert "given  9f lahf: state 0: rip is" in wrong.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*XOL, "--bound", "2"), "--bound has no effect without --sweep"),
        ((*XOL, "--sweep", "--bound", "9"), "9 is not in the range 0<=x<=3"),
        ((*XOL, "--bytes", "9"), "--bytes '9': give bytes in hexadecimal digits"),
        ((*XOL, "--bytes", ""), "--bytes '': give bytes in hexadecimal digits"),
        ((*XOL, "--bytes", "9f", "--sweep"), "--sweep has no effect with --bytes"),
        ((*XOL, "--results", "x"), "--results keeps a --sweep"),
        (("--bytes", "9f"), "--bytes has no effect without --object"),
        (
            ("--object", "testbins:decoder.o", "--glue", "linux-uprobes", "--isa", "riscv64", "--sweep", "--bound",
             "1", "--results", "none.json"),
            "--bound is for prefixes of x86",
        ),
    ],
)  # fmt: skip
def test_wrong_usage_is_one_line(words, message):
    result = run(*words)
    assert result.exit_code == 2
    assert message in result.output
    assert "Traceback" not in result.output
