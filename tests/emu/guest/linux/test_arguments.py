"""System calls check their arguments as Linux does: the programs of `arguments` print the same.

The expected output was written by a run on the hardware's own Linux, as root; PROGRAM is where it is built:

    .venv/bin/python -m tests.emu.guest.linux.test_arguments PROGRAM
"""

import os
import platform
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from emu.isa import ISAS
from tests.emu.guest.linux.support import run

SOURCES = Path(__file__).parent / "arguments"
EXPECTED = SOURCES / "expected"
CALLS = Path(__file__).parents[4] / "testbins/linux/calls"
CASES = sorted(path.stem for path in EXPECTED.glob("*.txt"))
FLAGS = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-pthread", "-static", f"-I{CALLS}")
COMPILERS = {"i386": "i686-linux-gnu-gcc"}
NEW_ENOUGH = (6, 12)


def built(isa, to):
    """Build the programs, which are one file; None: there is no compiler."""
    compiler = shutil.which(COMPILERS.get(isa, f"{isa}-linux-gnu-gcc"))
    if compiler is None:
        return None
    subprocess.run([compiler, *FLAGS, "-o", to, *sorted(SOURCES.glob("*.c")), CALLS / "calls.c"], check=True)
    return to


def native(program, case):
    """Return what a case prints on this machine, and its exit status."""
    ran = subprocess.run([program, case], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    return f"{ran.stdout}exit {ran.returncode}\n"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Return a function that builds for an ISA, once."""
    folder = tmp_path_factory.mktemp("arguments")

    @cache
    def find(isa):
        return built(isa, folder / isa)

    return find


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("case", CASES)
def test_a_case_prints_what_linux_prints(isa, case, programs):
    program = programs(isa)
    if program is None:
        pytest.skip(f"no compiler for {isa} on this machine")
    assert run(isa, (program, case)).output == (EXPECTED / f"{case}.txt").read_text()


def test_every_case_has_an_expected_output(programs):
    program = programs("x86_64")
    if program is None:
        pytest.skip("no compiler for x86-64 on this machine")
    listed = run("x86_64", (program,)).output.split()[:-2]
    assert sorted(listed) == CASES


def is_reference():
    """Return whether this machine's Linux can be asked."""
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    return sys.platform == "linux" and platform.machine() == "x86_64" and release >= NEW_ENOUGH and os.geteuid() == 0


if __name__ == "__main__":
    if not is_reference():
        sys.exit("this needs Linux 6.12 or later on x86-64, and root")
    EXPECTED.mkdir(exist_ok=True)
    made = built("x86_64", Path(sys.argv[1]))
    for name in subprocess.run([made], stdout=subprocess.PIPE, text=True, check=True).stdout.split():
        (EXPECTED / f"{name}.txt").write_text(native(made, name))
