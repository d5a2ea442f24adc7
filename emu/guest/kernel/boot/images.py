"""The checked-in builds of the kernel guest.

Each is a kernel and its initial file system in `testbins/built/<isa>/`.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from emu.guest.kernel.boot import initrd
from emu.isa.base import Isa

FUNCTIONS = "functions"
LINUX = "linux"
KERNELS = "kernels"
OBJECTS = "objects"
_NOT_IN_GUEST = frozenset({"kernel", FUNCTIONS, LINUX, KERNELS, OBJECTS})


def built(isa: Isa) -> Path:
    """Return the folder of an ISA's build.  Raises FileNotFoundError if it does not exist."""
    # testbins has no __init__.py: it is data beside the packages (in a checkout, or in an installed wheel).
    folders = [Path(path) / "built" / isa.name for path in import_module("testbins").__path__]
    for folder in folders:
        if (folder / "kernel").is_file():
            return folder
    raise FileNotFoundError(f"{folders[0] / 'kernel'}: no such file; `make testbins` builds it")


@cache
def programs(isa: Isa) -> dict[str, bytes]:
    """Return the files of the initial file system: path without leading slash -> content."""
    return initrd.tree(built(isa), _NOT_IN_GUEST)


def kernel(isa: Isa, variant: str) -> Path:
    """Return a kernel built with another mechanism.

    For example "sdt-2018" (testbins/Makefile, GENERATIONS).
    """
    return built(isa) / KERNELS / variant


def function(isa: Isa, name: str) -> Path:
    """Return the file of a function built for the function guest (testbins/functions)."""
    return built(isa) / FUNCTIONS / name


def linux(isa: Isa, name: str) -> Path:
    """Return a program built for the Linux guest (testbins/linux)."""
    return built(isa) / LINUX / name
