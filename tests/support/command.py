"""Running `trapline` as a user does: a process of its own."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LIMIT = 120


def run_trapline(arguments, *, text_input="", cwd=ROOT):
    """Run trapline with arguments; returns a CompletedProcess with text stdout and stderr."""
    return subprocess.run(
        [sys.executable, "-m", "trapline", *arguments],
        input=text_input,
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
        cwd=cwd,
    )
