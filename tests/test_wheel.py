"""The wheel is complete, and runs without a checkout."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

from tests.support.command import ROOT
from tests.support.documents import BLOCKS
from trapline.cli import COMMANDS

# Examples of the documentation: one of each command that has one, and one of Python.  TRAPLINE_WHEEL=all runs all.
EXAMPLES = """dtrace-4 sdt-5 plockstat-1 linux-6 linux-5 linux-3 step-1 displace-3 race-5 museum-1 bench-2 modules-4
    course-1 python-3""".split()
ALL = os.environ.get("TRAPLINE_WHEEL") == "all"
CHOSEN = [block for block in BLOCKS if ALL or block.name in EXAMPLES]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def prefix(wheel, tmp_path_factory):
    """Return the folder of an environment with the wheel, and with this one's other packages."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    pip = ["pip", "--python", str(folder / "bin" / "python"), "--quiet", "--disable-pip-version-check", "install"]
    subprocess.run([sys.executable, "-m", *pip, "--no-deps", "--no-index", "--no-compile", str(wheel)], check=True)
    # A path in a .pth file: the .pth files in that folder, an editable Trapline among them, are not read.
    packages = next(folder.glob("lib/python*/site-packages"))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder


@pytest.fixture
def installed(prefix, tmp_path):
    """Return a runner of the environment's commands, in an empty folder."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    environment["PATH"] = f"{prefix / 'bin'}:{os.environ['PATH']}"

    def run(program, *arguments):
        command = (
            [str(prefix / "bin" / program), *arguments] if program in {"python", "trapline"} else [program, *arguments]
        )
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

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
    run = installed(
        "python", "-c", "import emu, providers, trapline; print(emu.__path__, providers.__path__, trapline.__path__)"
    )
    assert str(ROOT) not in run.stdout
    assert installed("trapline", "--version").stdout.startswith("trapline, version ")


def test_every_command_of_the_wheel_can_be_imported(installed):
    imports = "; ".join(f"import trapline.commands.{name}" for name in COMMANDS)
    run = installed("python", "-c", imports)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("block", CHOSEN, ids=lambda block: block.name)
def test_an_example_of_the_documentation_runs_from_the_wheel(installed, block):
    if block.kind == "python":
        run = installed("python", "-c", block.text)
        assert run.returncode == 0, run.stderr
    for example in block.examples():
        run = installed("trapline", *example.arguments)
        assert example.is_shown(run.stdout, run.stderr), f"$ {shlex.join(example.arguments)}\n{run.stdout}{run.stderr}"


def test_every_command_with_an_example_runs_from_the_wheel():
    def commands(blocks):
        return {example.arguments[0] for block in blocks for example in block.examples()}

    assert commands(block for block in BLOCKS if block.name in EXAMPLES) == commands(BLOCKS)


def test_a_lab_sheet_names_files_that_the_wheel_has(installed, tmp_path):
    numbers = [line.split()[0] for line in installed("trapline", "lab", "list").stdout.splitlines()]
    assert len(numbers) >= 10
    packages = installed("python", "-c", "import emu, pathlib; print(pathlib.Path(emu.__file__).parents[1])").stdout
    named = 0
    for number in numbers:
        assert installed("trapline", "lab", "start", number).returncode == 0
        sheet = (tmp_path / f"lab-{number}" / "sheet.md").read_text()
        pages = re.findall(r"docs/([\w-]+\.md)", sheet)
        folder = re.search(r"^\* The pages of docs/ are in (.+)$", sheet, re.MULTILINE)
        assert (folder is not None) == bool(pages)
        modules = re.findall(r"`((?:emu|providers|trapline)/[\w/]+\.py)`", sheet)
        missing = [page for page in pages if not Path(folder[1], page).is_file()]
        missing += [module for module in modules if not Path(packages.strip(), module).is_file()]
        assert not missing, number
        named += len(pages)
    assert named >= 9


def test_the_metadata_names_the_project(wheel):
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = archive.read(name).decode()
    urls = dict(re.findall(r"^Project-URL: (\w+), (\S+)$", metadata, re.MULTILINE))
    assert urls.keys() == {"Homepage", "Documentation", "Changelog", "Issues"}
    assert all(url.startswith(urls["Homepage"]) for url in urls.values())
    for url in (urls["Documentation"], urls["Changelog"]):
        assert (ROOT / url.partition("/main/")[2]).exists()


def test_the_shell_completes_by_the_wheels_script(installed, prefix):
    script = prefix / "share" / "bash-completion" / "completions" / "trapline"
    complete = 'COMP_WORDS=(trapline lock); COMP_CWORD=1; _trapline_completion trapline; echo "${COMPREPLY[@]}"'
    run = installed("bash", "-c", f'. "{script}"; {complete}')
    assert run.stdout == "lockstat\n"


def test_man_finds_the_wheels_page(installed, prefix):
    if shutil.which("man") is None:
        pytest.skip("man is not installed")
    run = installed("man", "-M", str(prefix / "share" / "man"), "-w", "trapline")
    assert run.stdout.strip() == str(prefix / "share" / "man" / "man1" / "trapline.1")
