"""The end of the process: everything is written, everybody is called, and then nothing more is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT

# A command that leaves behind what an interpreter takes care of at its end.
LEAVING = """
import atexit, sys, threading
import trapline.cli
from trapline import start

class Object:
    def __del__(self):
        sys.stderr.write("destroyed ")

def command():
    end = threading.Event()
    threading.Thread(target=lambda: (end.wait(), sys.stderr.write("thread "))).start()
    atexit.register(lambda: (sys.stderr.write("handler "), print("more")))
    atexit.register(sys.stderr.write, "first handler ")
    trapline.cli.kept = Object()
    end.set()
    print("output")
    {ending}

trapline.cli.main = command
start.main()
"""
CALLED = "thread first handler handler "


def _run(ending, **streams):
    program = LEAVING.format(ending=ending)
    return _python(["-c", program], stderr=subprocess.PIPE, **streams)


def _python(arguments, **streams):
    """Run Python with buffered output, which is its usual way."""
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, env=buffered, text=True, check=False, timeout=60, **streams
    )


@pytest.mark.parametrize(
    ("ending", "status"), [("sys.exit()", 0), ("sys.exit(3)", 3), ("sys.exit(0x1ff)", 255), ("sys.exit(True)", 1)]
)
def test_threads_and_handlers_are_waited_for_and_nothing_is_destroyed(ending, status):
    done = _run(ending, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout, done.stderr) == (status, "output\nmore\n", CALLED)


@pytest.mark.parametrize(("ending", "told"), [("sys.exit('why')", "why\n"), ("1 / 0", "ZeroDivisionError")])
def test_an_end_with_a_message_is_the_interpreters_own(ending, told):
    done = _run(ending, stdout=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (1, "output\nmore\n")
    assert told in done.stderr
    assert done.stderr.endswith("destroyed ")


def test_output_that_cannot_be_written_at_the_end_is_reported():
    with Path("/dev/full").open("w") as full:
        done = _run("sys.exit(3)", stdout=full)
    assert "No space left on device" in done.stderr
    assert done.returncode == 120  # Python's own status for it


def test_every_file_of_a_trace_is_complete(tmp_path):
    program = 'BEGIN { printf("one\\n"); freopen("%s"); printf("two\\n"); freopen(""); printf("three\\n"); exit(3); }'
    command = ["dtrace", "-qwn", program.replace("%s", f"{tmp_path}/two"), "-c", "echo guest"]
    files = ["-o", f"{tmp_path}/out", "--export", f"{tmp_path}/trace.json", "--program-output", f"{tmp_path}/guest"]
    done = _python(["-m", "trapline", *command, *files], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (3, "", "")
    assert (tmp_path / "two").read_text() == "two\n"
    assert (tmp_path / "out").read_text() == "one\nthree\n\n"
    assert json.loads((tmp_path / "trace.json").read_text())
