"""Kernels fetched from Debian, where Debian's programs fail."""

import os

from tests.support.command import run_trapline

_APT = """#!/bin/sh
echo "E: Failed to fetch http://debian.example/Packages.xz  File has unexpected size" >&2
echo "   Hashes of expected file:" >&2
echo "E: Some index files failed to download. They have been ignored, or old ones used instead." >&2
exit 100
"""


def test_the_first_error_of_apt_is_the_reason(tmp_path, monkeypatch):
    program = tmp_path / "apt-get"
    program.write_text(_APT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setenv("TRAPLINE_DATA", str(tmp_path))
    result = run_trapline(["kernel", "get", "riscv64"])
    assert result.returncode == 1
    *_, line = result.stderr.splitlines()
    assert line.endswith(
        "apt-get update: E: Failed to fetch http://debian.example/Packages.xz  File has unexpected size"
    )
