"""Scripts of the kind that toolkits publish compile for the kernel guest."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.command import run_trapline

SCRIPTS = sorted((Path(__file__).parent / "toolkit" / "kernel").glob("*.d"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_of_the_toolkits_kind_compiles(script):
    run = run_trapline(["dtrace", "-e", "-s", str(script)])
    assert (run.stderr, run.returncode) == ("", 0)
