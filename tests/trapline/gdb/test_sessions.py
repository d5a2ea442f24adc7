"""The sessions of docs/gdb.md, by gdb itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys

import pytest

from tests.support.command import ROOT
from tests.support.documents import matches

_GDB = shutil.which("gdb-multiarch")
_BLOCK = re.compile(r"^```text\n\$ trapline gdb ([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_SESSIONS = _BLOCK.findall((ROOT / "docs/gdb.md").read_text())
_MARK = "(gdb) "
_SETTINGS = ("pagination off", "confirm off", "width 0", "remotetimeout 60")

pytestmark = pytest.mark.skipif(_GDB is None, reason="needs Debian's gdb-multiarch")


def _session(arguments: str, commands: list[str]) -> str:
    """Return what gdb prints, with each command before its output."""
    server = f"{sys.executable} -m trapline gdb --stdio {arguments} 2>/dev/null"
    script = [*(f"set {one}" for one in _SETTINGS), f"target remote | {server}"]
    for command in commands:
        script += [f"echo {_MARK.rstrip()}\\ {command}\\n".replace("$", "\\$"), command]
    words = [_GDB or "", "-nx", "-batch", *(word for line in script for word in ("-ex", line))]
    result = subprocess.run(
        words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, cwd=ROOT, check=False
    )
    _, mark, shown = result.stdout.partition(_MARK)
    return mark + shown


@pytest.mark.parametrize(("arguments", "text"), _SESSIONS, ids=[arguments for arguments, _ in _SESSIONS])
def test_a_session_of_the_page_is_what_gdb_shows(arguments: str, text: str) -> None:
    commands = [line.removeprefix(_MARK) for line in text.splitlines() if line.startswith(_MARK)]
    shown = _session(arguments, commands)
    assert matches([*text.splitlines(), "..."], shown), shown


@pytest.mark.parametrize("isa", ["x86_64", "i386", "aarch64", "riscv64"])
def test_gdb_follows_a_call_on_each_isa(isa: str) -> None:
    shown = _session(
        f"--isa {isa} -c 'getpid 2' -n 'fbt::sys_getpid:entry'",
        ["tbreak sys_getpid", "continue", "bt 2", "finish", "info registers pc", "continue"],
    )
    assert "#1" in shown
    assert "syscallenter" in shown
    assert "Run till exit" in shown or "Value returned" in shown
    assert "exited normally" in shown
