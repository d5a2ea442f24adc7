"""Another distribution's `emu`, `providers` or `testbins`: it is said in one line."""

import os
import subprocess
import sys

import pytest

from tests.support.command import ROOT
from trapline.support.neighbours import intruder

LINE = "is found, not Trapline's in {root}: install Trapline in an environment of its own\n"


def run(folder, *arguments):
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)


def test_the_packages_of_a_checkout_are_its_own():
    assert intruder() is None


@pytest.mark.parametrize("name", ["emu", "providers", "testbins"])
@pytest.mark.parametrize("form", ["{}/__init__.py", "{}.py"])
def test_a_package_of_the_same_name_that_comes_first_is_named(name, form, tmp_path):
    file = tmp_path / form.format(name)
    file.parent.mkdir(exist_ok=True)
    file.write_text("")
    result = run(tmp_path, "-m", "trapline", "--version")
    assert result.returncode == 1
    assert result.stdout == ""
    place = tmp_path / name if form.endswith("__init__.py") else tmp_path / f"{name}.py"
    assert result.stderr == f"trapline: the package '{name}' in {place.parent} {LINE.format(root=ROOT)}"
    result = run(tmp_path, "-c", "import trapline; trapline.trace")
    assert result.stderr.splitlines()[-1].startswith(f"ImportError: the package '{name}' in {tmp_path}")


def test_the_distribution_that_brings_it_is_named(tmp_path):
    (tmp_path / "emu").mkdir()
    (tmp_path / "emu/__init__.py").write_text("")
    info = tmp_path / "emulator-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: emulator\nVersion: 1.0\n")
    (info / "top_level.txt").write_text("emu\n")
    (info / "RECORD").write_text("emu/__init__.py,,\n")
    assert "(it comes with emulator): install" in run(tmp_path, "-m", "trapline", "--version").stderr
