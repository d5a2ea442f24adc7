"""The functions that Unicorn's libraries for other systems export: those that Trapline calls.

    pip install lief
    pip download unicorn==2.1.4 --no-deps --only-binary=:all: --platform macosx_11_0_arm64
    python -m benchmarks.wheels unicorn-*.whl

Libraries are only read, so that of any system can be.  The results are saved, and
`benchmarks.prose` writes them into docs/hosts.md.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import save
from benchmarks.tables import table
from emu.isa.calibration import SUBJECTS
from emu.unicorn_layout import functions

SAVED: Final = Path(__file__).parent / "results" / "wheels.json"
_LIBRARY: Final = re.compile(r"unicorn/lib/(lib)?unicorn[^/]*\.(so\.\d+|dylib|dll)")
# The last part of a wheel's name, without its suffix: the systems for which it is.
_SYSTEMS: Final = re.compile(r"-([^-]+)\.whl$")


class WheelError(Exception):
    """A wheel that cannot be read; the message says why."""


def needed() -> frozenset[str]:
    """Return the names of the library's functions that are not public and that Trapline calls."""
    common = (*functions.CALLBACKS, *functions.ENGINE, *functions.BLOCKS)
    of_each = {f"{name}_{subject.target}" for subject in SUBJECTS for name in common}
    return frozenset(of_each.union(*((*subject.functions, *subject.block_functions) for subject in SUBJECTS)))


def read(wheel: Path) -> dict[str, Any]:
    """Return what the library in a wheel exports.  Raises `WheelError`."""
    systems, library = _SYSTEMS.search(wheel.name), _library(wheel)
    if systems is None or not library:
        raise WheelError(f"{wheel} is not a wheel of unicorn with a library")
    try:
        import lief  # noqa: PLC0415  only this function needs it
    except ImportError:
        raise WheelError("lief is needed: pip install lief") from None
    names = {function.name for function in lief.parse(list(library)).exported_functions}
    # Mach-O has an underscore before each name of C.
    missing = [name for name in needed() if not {name, f"_{name}"} & names]
    return {"systems": systems[1], "exported": len(names), "missing": len(missing)}


def _library(wheel: Path) -> bytes:
    """Return the library in a wheel, empty if there is none.  Raises `WheelError`."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            name = next(filter(_LIBRARY.fullmatch, archive.namelist()), None)
            return archive.read(name) if name else b""
    except (OSError, zipfile.BadZipFile) as error:
        raise WheelError(f"{wheel} cannot be read: {error}") from None


def section() -> str:
    """Return the saved results as a table."""
    saved = json.loads(SAVED.read_text("utf-8"))
    head = ("wheel for", "functions exported", f"of the {saved['needed']} that Trapline calls")
    rows = [
        (f"`{one['systems']}`", f"{one['exported']:,}", _share(saved["needed"], one["missing"]))
        for one in saved["wheels"]
    ]
    return table(head, rows)


def _share(all_of_them: int, missing: int) -> str:
    return "all" if not missing else str(all_of_them - missing) if missing < all_of_them else "none"


def main() -> None:
    """Read the wheels that are given, and save the results."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wheels", description=__doc__.split("\n", 1)[0])
    parser.add_argument("wheels", nargs="+", type=Path, metavar="WHEEL")
    try:
        found = sorted((read(wheel) for wheel in parser.parse_args().wheels), key=lambda one: str(one["systems"]))
    except WheelError as error:
        sys.exit(str(error))
    save(SAVED, {"needed": len(needed()), "wheels": found})
    print(section())


if __name__ == "__main__":
    main()
