"""The packages beside this one: `emu`, `providers` and `testbins` must be Trapline's own.

They are packages of their own, so another distribution may bring one of the same name: it then
comes first on the path, or has replaced files.  Nothing of Trapline is imported here.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

# Package -> a file or folder that ours has.
_OURS: Final = {"emu": "isa/base.py", "providers": "fbt/fbt.py", "testbins": "built"}


def intruder() -> str | None:
    """Return one line about a package that is not Trapline's; None: all are."""
    here = Path(__file__).parents[2]
    for name, file in _OURS.items():
        found = find_spec(name)
        folders = [Path(folder) for folder in (found.submodule_search_locations or ()) if found] if found else []
        if found is not None and found.origin and not folders:
            folders = [Path(found.origin)]  # a module of one file
        if folders and folders[0] == here / name and (folders[0] / file).exists():
            continue
        if here / name in folders and found is not None and found.origin is None:
            continue  # data in several folders: ours is among them
        where = f"the package '{name}' in {folders[0].parent}" if folders else f"no package '{name}'"
        return (
            f"{where} is found, not Trapline's in {here}{_owner(name)}: install Trapline in an environment of its own"
        )
    return None


def _owner(name: str) -> str:
    """Return which distributions have brought a package, in parentheses."""
    from importlib.metadata import packages_distributions  # noqa: PLC0415  slow, and only for the error

    others = [one for one in packages_distributions().get(name, ()) if one != "trapline"]
    return f" (it comes with {', '.join(dict.fromkeys(others))})" if others else ""
