"""The manual page and shell completion, which the wheel installs."""

import os
import shutil
import subprocess
import sys

import pytest

from emu.isa import ISAS
from tests.support.command import ROOT
from trapline.cli import COMMANDS

PAGE = ROOT / "share/man/man1/trapline.1"


def test_the_manual_page_lists_every_command_with_its_summary():
    text = PAGE.read_text()
    missing = [name for name, entry in COMMANDS.items() if f".TP\n.B {name}\n{entry.summary}\n" not in text]
    assert not missing, f"share/man/man1/trapline.1 lacks {missing}, or has other summaries than trapline/cli.py"


@pytest.mark.skipif(not shutil.which("man"), reason="man is not installed")
def test_man_finds_nothing_wrong_with_it():
    run = subprocess.run(["man", "--warnings", "-l", PAGE], capture_output=True, text=True, check=True)
    assert run.stderr == ""


def complete(words):
    """What bash offers after some words."""
    environment = os.environ | {
        "_TRAPLINE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))
    }  # fmt: skip
    code = "import sys; sys.argv = ['trapline']; from trapline.start import main; main()"
    run = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return [line.partition(",")[2] for line in run.stdout.splitlines()]


def test_commands_options_and_choices_are_completed():
    assert complete("trapline disp") == ["displace"]
    assert set(complete("trapline ")) == set(COMMANDS)
    assert complete("trapline check --isa ris") == ["riscv64"]
    assert "--provider" in complete("trapline displace --pro")


@pytest.mark.parametrize(
    ("words", "some"),
    [
        ("dtrace --isa ", [*ISAS]),
        ("dtrace -n BEGIN --guest linux", ["linux", "linux-kernel"]),
        ("dtrace --export-f", ["--export-format"]),
        ("dtrace -x fid", ["fidelity=exact", "fidelity=freebsd"]),
        ("lockstat --isa ", [*ISAS]),
        ("plockstat --trap ", ["host", "guest"]),
        ("plockstat --ju", []),
        ("displace ", [*ISAS]),
        ("check --glue linux", ["linux-kprobes", "linux-uprobes"]),
        ("check --museum ebreak", ["ebreak-length"]),
        ("object build --glue fb", ["fbt"]),
        ("race --glue t", ["text-poke"]),
        ("bench --isa x86_64,i", ["x86_64,i386"]),
        ("bench --mechanism fbt", ["fbt"]),
    ],
)
def test_flags_and_values_of_commands_that_read_them_themselves_are_completed(words, some):
    found = complete(f"trapline {words}")
    assert found[: len(some)] == some


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_the_script_of_bash_defines_a_completion():
    script = ROOT / "share/completions/trapline.bash"
    command = ["bash", "-c", f". {script} && complete -p trapline"]
    assert (
        "-F _trapline_completion trapline" in subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_script_asks_the_command(shell):
    assert f"_TRAPLINE_COMPLETE={shell}_complete" in (ROOT / f"share/completions/trapline.{shell}").read_text()
