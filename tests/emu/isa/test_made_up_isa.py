"""A fifth ISA: one of the four copied under another name, in a copy of the packages.

Only the files of docs/adding-an-isa.md are copied and changed; so if this fails, a file that the
page does not mention contains the name of an ISA.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

from emu.isa import ISAS
from tests.emu.isa.checklist import ROOT, files, registries

pytestmark = pytest.mark.exhaustive

NAME = "madeup"
PACKAGES = ("emu", "providers", "trapline")
# Registries by QEMU's name of a CPU, which the made-up ISA shares with the original.
QEMU_NAMES = {"targets.py"}


def renamed(text, isa, *, own=False):
    """Python that names an ISA: the string, the modules of its folder and ports, and its constant.

    In the ISA's `own` folder other strings are names that QEMU or Linux give it.
    """
    text = re.sub(rf'name="{isa}"' if own else rf'"{isa}"', f'name="{NAME}"' if own else f'"{NAME}"', text)
    folders = r"emu\.isa|emu\.guest\.linux_kernel\.platforms|providers\.\w+"
    text = re.sub(rf"\b({folders})\.{isa}\b", rf"\1.{NAME}", text)
    text = re.sub(rf"\b(from providers(?:\.\w+)? import [\w, ]*)\b{isa}\b", rf"\1{NAME}", text)
    text = re.sub(rf"\b{isa}(\.(?:PORT|TABLE))\b", rf"{NAME}\1", text)
    text = re.sub(rf"\b{isa} as\b", f"{NAME} as", text)
    return re.sub(rf"\b{isa.upper()}\b", NAME.upper(), text)


@pytest.fixture(scope="module", params=["riscv64", "i386"])
def tree(request, tmp_path_factory):
    """A copy of the packages in which the ISA of another name stands in the place of the original."""
    isa, top = request.param, tmp_path_factory.mktemp("tree")
    for package in PACKAGES:
        shutil.copytree(ROOT / package, top / package, ignore=shutil.ignore_patterns("__pycache__", "museum"))
    # The exhibits of the museum are about one ISA each: this tree has none.
    for file in (ROOT / "trapline/lab/museum").rglob("*.py"):
        if "\nEXHIBIT" not in file.read_text():
            copy = top / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
    for row in files():
        for path in row.paths(isa):
            place = top / re.sub(rf"\b{isa}\b", NAME, str(path.relative_to(ROOT)))
            if place.parts[len(top.parts)] in PACKAGES:
                place.parent.mkdir(parents=True, exist_ok=True)
                original = top / path.relative_to(ROOT)
                own = path.parts[-3] == "isa"
                place.write_text(renamed(path.read_text(), isa, own=own) if path.suffix == ".py" else path.read_text())
                original.unlink()
    for registry in registries():
        place = top / registry.path.relative_to(ROOT)
        if place.is_file():
            place.write_text(renamed(place.read_text(), isa, own=registry.path.name in QEMU_NAMES))
    (top / "testbins/built").mkdir(parents=True)
    for other in ISAS:
        (top / "testbins/built" / (NAME if other == isa else other)).symlink_to(ROOT / "testbins/built" / other)
    return top


def run(tree, *arguments):
    """Run a command of the copied tree."""
    # The first command compiles the modules for the others, outside the tree's packages.
    kept = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(tree / "bytecode")}
    environment = {**os.environ, "PYTHONPATH": str(tree), **kept}
    command = [sys.executable, "-m", "trapline", *map(str, arguments)]
    done = subprocess.run(command, check=False, cwd=tree, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_name_is_known_and_the_originals_is_not(tree):
    names = subprocess.run(
        [sys.executable, "-c", "import emu.isa; print(emu.isa.__file__, *emu.isa.ISAS)"],
        cwd=tree, env={**os.environ, "PYTHONPATH": str(tree)}, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    assert names[0].startswith(str(tree))
    assert NAME in names
    assert len(names) == 1 + len(ISAS)


@pytest.mark.parametrize("path", ["host", "guest"])
def test_its_kernel_boots_and_fbt_fires(tree, path):
    program = "fbt::sys_getpid:entry, fbt::sys_getpid:return { @[probename] = count(); }"
    shown = run(tree, "dtrace", "--isa", NAME, "--trap", path, "-qn", program, "-c", "getpid 7")
    assert re.findall(r"(\w+) +(\d+)", shown) == [("entry", "7"), ("return", "7")]


def test_the_pid_provider_and_its_registers(tree):
    shown = run(tree, "dtrace", "--isa", NAME, "-qn", "pid$target:a.out:main:entry { trace(uregs[0] != 1); }",
                "-c", "getpid 1")  # fmt: skip
    assert shown.strip().endswith("1")


def test_a_linux_program_runs_and_a_uprobe_fires(tree):
    program = tree / "testbins/built" / NAME / "linux/zoo"
    shown = run(tree, "dtrace", "-qn", "syscall::write:entry { @ = count(); }", "-c", program)
    assert re.search(r"^\s+[1-9]\d*$", shown, re.MULTILINE)
    shown = run(tree, "uprobe", f"p:here {program}:main", "-c", program)
    assert "here:" in shown


def test_sites_check_and_step(tree):
    function = tree / "testbins/built" / NAME / "functions/digest"
    assert "entry" in run(tree, "sites", "--function", "digest", function)
    assert "same: " in run(tree, "check", "--function", "digest", "--states", "2", function)
    shown = run(tree, "step", "--isa", NAME, "-n", "fbt::sys_getpid:entry", "-c", "getpid 1")
    assert "resume" in shown


def test_orders_of_patching_and_objects(tree):
    shown = run(tree, "race", "--patch", "fbt::sys_getpid:entry", "--isa", NAME, "--method", "stop-machine")
    assert f"{NAME}  stop-machine  holds" in re.sub(r" {2,}", "  ", shown)
    wanted = ["--glue", "fbt", "--isa", NAME, "--function", "sys_access"]
    shown = run(tree, "check", "testbins:kernel", "--object", "testbins:scanner.o", *wanted)
    assert shown.endswith("the same\n")
