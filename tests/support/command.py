"""Running `trapline` as a user does: a process of its own."""

import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent.parent
LIMIT = 120


@cache
def _template():
    """Return the process that commands are forked from (tests/support/template.py); it ends with this one."""
    command = [sys.executable, "-m", "tests.support.template"]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)


def run_trapline(arguments, *, text_input="", cwd=ROOT):
    """Run trapline with arguments; returns a CompletedProcess with text stdout and stderr.

    Raises `subprocess.TimeoutExpired` after `LIMIT` seconds.
    """
    template = _template()
    with TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("stdin", "stdout", "stderr")]
        for file, content in zip(files, (text_input, "", ""), strict=True):
            file.write_text(content, encoding="utf-8")
        request = {
            "arguments": arguments,
            "cwd": str(cwd),
            "environment": dict(os.environ),
            "files": [str(file) for file in files],
            "limit": LIMIT,
        }
        template.stdin.write(json.dumps(request) + "\n")
        template.stdin.flush()
        answer = template.stdout.readline()
        assert answer, "the template process ended"
        status = json.loads(answer)
        if status is None:
            raise subprocess.TimeoutExpired(["trapline", *arguments], LIMIT)
        _, stdout, stderr = (file.read_text(encoding="utf-8") for file in files)
        return subprocess.CompletedProcess(["trapline", *arguments], status, stdout, stderr)
