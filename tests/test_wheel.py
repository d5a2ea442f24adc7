"""The wheel is complete, and runs without a checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

from tests.support.command import ROOT


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """Return a runner of Python in an environment with the wheel, and with this one's other packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    packages = next(folder.glob("lib/python*/site-packages"))
    install = ["pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--no-index", "--no-compile"]
    subprocess.run([sys.executable, "-m", *install, "--target", str(packages), str(wheel)], check=True)
    # A path in a .pth file: the .pth files in that folder, an editable Trapline among them, are not read.
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*arguments):
        command = [str(folder / "bin" / "python"), *arguments]
        return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)

    return run


def test_the_wheel_has_every_file_of_the_packages(wheel):
    listed = subprocess.run(
        ["git", "ls-files", "emu", "providers", "trapline", "testbins/built"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {*listed.stdout.split()} <= {*names}
    # The manual page and the completions, where man and the shells look below a prefix.
    shared = {name.partition(".data/data/")[2] for name in names if ".data/data/" in name}
    assert shared == {
        "share/man/man1/trapline.1", "share/bash-completion/completions/trapline",
        "share/zsh/site-functions/_trapline", "share/fish/vendor_completions.d/trapline.fish",
    }  # fmt: skip


def test_the_installed_package_is_the_wheel(installed):
    run = installed("-c", "import emu, providers, trapline; print(emu.__path__, providers.__path__, trapline.__path__)")
    assert str(ROOT) not in run.stdout
    assert installed("-m", "trapline", "--version").stdout.startswith("trapline, version ")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["dtrace", "-qn", "fbt::sys_read:entry { @[execname] = count(); }", "-c", "cat /etc/motd"], "cat"),
        (["dtrace", "--isa", "riscv64", "-qn", "proc:::exec { trace(stringof(args[0])); }", "-c", "ls"], "ls"),
        (["sites", "testbins:zoo", "--function", "fib"], "fib"),
        (["check", "--museum", "move-as-jump"], "right rule"),
        (["uprobe", "r:zoo:fib $retval:s32", "-c", "testbins:zoo recursion"], "fib"),
        (["usdt", "-l", "testbins:zoo"], "throw"),
        (["step", "-n", "fbt::malloc:entry", "--isa", "aarch64"], "malloc"),
        (["lockstat", "-H", "-D", "3", "pipetest", "8"], "hold"),
        (["kldstat"], "kernel"),
        (["lab", "list"], "What is in this byte"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_a_command_runs_from_the_wheel(installed, words, expected):
    run = installed("-m", "trapline", *words)
    assert (run.returncode, run.stderr) == (0, "")
    assert expected in run.stdout
