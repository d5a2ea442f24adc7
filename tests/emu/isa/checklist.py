"""The tables of docs/adding-an-isa.md, as data."""

import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs" / "adding-an-isa.md"
_ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)


class File(NamedTuple):
    """A row of the first table."""

    level: str
    pattern: str
    needed: bool

    def paths(self, isa: str) -> list[Path]:
        """The files of an ISA, those that there are."""
        return sorted(ROOT.glob(self.pattern.replace("<isa>", isa)))


class Registry(NamedTuple):
    """A row of the second table."""

    path: Path
    level: str


def _rows(heading: str) -> list[list[str]]:
    section = PAGE.read_text().split(f"## {heading}\n")[1].split("\n## ")[0]
    rows = [[cell.strip() for cell in row.split("|")] for row in _ROW.findall(section)]
    return [row for row in rows[1:] if not set(row[0]) <= set("- ")]


def files() -> list[File]:
    return [File(level, file.strip("`"), needed == "needed") for level, file, _, needed in _rows("Files")]


def registries() -> list[Registry]:
    return [Registry(ROOT / file.strip("`"), level) for file, _, level in _rows("Registries")]
