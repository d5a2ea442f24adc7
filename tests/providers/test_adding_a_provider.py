"""docs/adding-a-provider.md is correct: folders, places of creation, registries, ports."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from emu.isa import ISAS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "adding-a-provider.md").read_text(encoding="utf-8")


def rows(heading):
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    cells = [[cell.strip().strip("`") for cell in line.split("|")[1:-1]] for line in section.splitlines()
             if line.startswith("|")]  # fmt: skip
    return cells[2:]


LISTED = rows("Where a provider is listed")
PORTED = [row for row in LISTED if row[3] != "none"]


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
    assert (ports == "none") != (ROOT / folder / "ports.py").exists()


def test_a_port_says_where_it_is_listed():
    for _, folder, _, ports in PORTED:
        text = (ROOT / folder / "port.py").read_text(encoding="utf-8")
        assert f"`{ports}` (docs/adding-a" in text, folder


def test_the_page_names_every_port():
    ports = {f"{folder.replace('/', '.')}.port.Port" for _, folder, _, _ in PORTED}
    assert {port for _, port, _ in rows("A port")} == ports
    for port in ports:
        module, _, name = port.rpartition(".")
        assert hasattr(import_module(module), name)
