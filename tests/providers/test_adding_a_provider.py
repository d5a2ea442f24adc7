"""docs/adding-a-provider.md is correct: its example, folders, places of creation, registries, ports."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from emu.guest.kernel.boot import images
from emu.isa import ISAS
from tests.support.documents import matches
from tests.support.some import some

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-provider.md").read_text(encoding="utf-8")


def rows(heading):
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in section.splitlines()
             if line.startswith("|")]  # fmt: skip
    return cells[2:]


LISTED = rows("Where a provider is listed")
PORTED = [row for row in LISTED if row[3] != "none"]


# (language, title, text) of the code blocks of the example.
EXAMPLE = re.findall(r'^```(\w+) title="([^"]+)"\n(.*?)^```$', PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the tree with the files of the example."""
    top = tmp_path_factory.mktemp("tree")
    for package in ("providers", "trapline"):
        shutil.copytree(ROOT / package, top / package, ignore=shutil.ignore_patterns("__pycache__"))
    for whole in ("emu", "testbins", "pyproject.toml"):
        (top / whole).symlink_to(ROOT / whole)
    for language, title, text in EXAMPLE:
        if language != "console":
            (top / title).parent.mkdir(exist_ok=True)
            (top / title).write_text(text, encoding="utf-8")
    return top


def run(tree, *arguments):
    environment = {**os.environ, "PYTHONPATH": str(tree), "GIT_CEILING_DIRECTORIES": str(tree.parent)}
    return subprocess.run(arguments, cwd=tree, env=environment, capture_output=True, text=True, check=False)


def trapline(tree, *arguments):
    done = run(tree, sys.executable, "-m", "trapline", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def session(tree):
    """The command that shows the provider, with its output, after those that prepare it."""
    [terminal] = [text for language, _, text in EXAMPLE if language == "console"]
    *before, last = re.split(r"^\$ ", terminal, flags=re.MULTILINE)[1:]
    for line in before:
        done = run(tree, *shlex.split(line))
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), line
    command, *expected = last.splitlines()
    program, *arguments = shlex.split(command)
    assert program == "trapline"
    return arguments, expected


@pytest.mark.parametrize("options", [(), ("--trap", "guest"), *(("--isa", isa) for isa in ISAS)], ids=" ".join)
def test_the_provider_of_the_page_works_as_the_page_says(tree, session, options):
    arguments, expected = session
    output = trapline(tree, arguments[0], *options, *arguments[1:])
    if "i386" in options:  # its structures are smaller
        expected = ["...", *(line for line in expected if line.startswith("  cat")), "..."]
        assert len(expected) == 3
    assert matches(expected, output), output


def test_the_provider_of_the_page_ends_a_chain_only_while_it_is_enabled(tree, session):
    del session  # the provider is there
    counted = "fbt::malloc:entry { @[probeprov] = count(); } "
    assert "fbt" in trapline(tree, "dtrace", "-qn", counted, "-c", "cat /etc/motd")
    both = counted + "large:::alloc { @[probeprov] = count(); }"
    found = trapline(tree, "dtrace", "-qn", both, "-c", "cat /etc/motd")
    assert "large" in found
    assert "fbt" not in found


def test_the_code_of_the_page_is_as_the_linters_want_it(tree):
    ruff = Path(sys.executable).with_name("ruff")
    for command in ("check", "format --diff"):
        done = run(tree, str(ruff), *command.split(), "--no-cache", "providers/large")
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_factory_is_for_a_file_that_the_guest_has():
    text = (ROOT / "trapline/machine/kernel_providers.py").read_text(encoding="utf-8")
    factories = set(re.findall(r'^ +"(\w+\.ko)": lambda', text, re.MULTILINE))
    assert "fbt.ko" in factories
    factories |= set(re.findall(r'"(\w+\.ko)": lambda', PAGE))
    found = {isa: {path.name for path in images.built(ISAS[isa]).glob("boot/kernel/*.ko")} for isa in ISAS}
    assert {isa: factories - files for isa, files in found.items() if factories - files} == {"i386": {"kinst.ko"}}


def test_every_provider_is_listed_once():
    folders = {f"providers/{path.parent.name}" for path in ROOT.glob("providers/*/__init__.py")}
    assert sorted(folder for _, folder, _, _ in LISTED) == sorted(folders - {"providers/dof"})


@pytest.mark.parametrize(("name", "folder", "maker", "_ports"), LISTED)
def test_a_provider_is_made_where_the_page_says(name, folder, maker, _ports):
    text = (ROOT / maker).read_text(encoding="utf-8")
    assert re.search(rf"from {folder.replace('/', '.')}[\w.]* import", text), name


@pytest.mark.parametrize(("_name", "folder", "_maker", "ports"), PORTED)
def test_a_registry_of_ports_lists_a_file_for_each_isa(_name, folder, _maker, ports):
    registry = import_module(ports.removesuffix(".py").replace("/", ".")).PORTS
    assert registry.keys() <= ISAS.keys()
    for isa, port in registry.items():
        assert import_module(f"{folder.replace('/', '.')}.{isa}").PORT is port
    here = {path.stem for path in (ROOT / folder).glob("*.py")}
    assert here & ISAS.keys() == registry.keys()


@pytest.mark.parametrize(("_name", "folder", "_maker", "ports"), LISTED)
def test_a_provider_that_has_a_registry_of_ports_says_so(_name, folder, _maker, ports):
    port = ROOT / folder / "port.py"
    assert (ports != "none") == (port.exists() and "PORTS" in port.read_text(encoding="utf-8"))


def test_a_port_says_where_it_is_listed():
    for _, folder, _, ports in some(PORTED):
        text = (ROOT / folder / "port.py").read_text(encoding="utf-8")
        assert "(docs/adding-a" in text, folder
        assert ports == f"{folder}/port.py"


def test_the_page_names_every_port():
    ports = {f"{folder.replace('/', '.')}.port.Port" for _, folder, _, _ in PORTED}
    assert {port for _, port, _ in rows("A port")} == ports
    for port in ports:
        module, _, name = port.rpartition(".")
        assert hasattr(import_module(module), name)
