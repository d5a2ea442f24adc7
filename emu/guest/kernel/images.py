"""The checked-in builds of the kernel guest: `testbins/built/<isa>/`, a kernel and its initial file system."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from emu.guest.kernel import initrd
from emu.isa.base import Isa

FUNCTIONS = "functions"


def built(isa: Isa) -> Path:
    """Return the folder of an ISA's build.  Raises FileNotFoundError if it is not there."""
    folder = Path(str(files("testbins"))) / "built" / isa.name
    if not (folder / "kernel").is_file():
        raise FileNotFoundError(f"{folder / 'kernel'}: no such file; `make testbins` builds it")
    return folder


@cache
def programs(isa: Isa) -> dict[str, bytes]:
    """Return the files of the initial file system: path without leading slash -> content."""
    return {
        path: data
        for path, data in initrd.tree(built(isa)).items()
        if path != "kernel" and not path.startswith(f"{FUNCTIONS}/")
    }


def function(isa: Isa, name: str) -> Path:
    """Return the file of a function built for the function guest (testbins/functions)."""
    return built(isa) / FUNCTIONS / name
