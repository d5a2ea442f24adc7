"""Kinst's decision of Debian's kernels: python -m benchmarks.kernel_code FOLDER...

Each FOLDER is an unpacked kernel package: its `boot` has the kernel, its modules are somewhere
below.  Each instruction of each function is given to kinst's port of the ISA.  The totals of an ISA
go to results/kernel_code.json: instructions by decision, refusals by rule, and files that could
not be read.  The exit status is 1 if there was an error, or a refusal without a rule.
"""

from __future__ import annotations

import json
import lzma
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.provenance import stamped
from emu.displaced.decision import Code, Emulated, OutOfLine, Refused, Rule, Stepped
from emu.elf.file import ElfError
from emu.guest.linux_kernel.errors import KernelFileError
from emu.guest.linux_kernel.files.image_file import read_kernel
from emu.guest.linux_kernel.kallsyms import Symbols, symbols_of
from emu.isa import ISAS
from providers import fasttrap, kinst
from providers.sequences import REACH
from trapline.lab.sites.fbt import SitesError
from trapline.lab.sites.instructions import UserCount, user_summary

RESULTS = Path(__file__).parent / "results" / "kernel_code.json"
# The bytes that the linker puts between functions: a symbol of kallsyms has no size but extends to the next one.
_FILL = {"x86_64": b"\xcc"}
_LONGEST = 16
_WHAT = {Emulated: "emulated", OutOfLine: "out of line", Stepped: "single-stepped", Refused: "refused"}


def _module(path: Path) -> list[UserCount]:
    """Count the instructions of a module.  Raises `ElfError`, `SitesError`."""
    with tempfile.NamedTemporaryFile(dir="/dev/shm", suffix=".ko") as file:
        file.write(lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes())
        file.flush()
        return user_summary(file.name, provider="kinst")


def _text(symbols: Symbols) -> tuple[int, int]:
    return symbols.address("_stext"), symbols.address("_etext")


def _kernel(path: Path) -> tuple[str, list[UserCount]]:
    """Count the instructions of a kernel's text.  Raises `KernelFileError`."""
    image = read_kernel(path)
    symbols = symbols_of(image)
    low, high = _text(symbols)
    first = symbols.address("_text")
    fasttrap_port, port = fasttrap.PORTS[image.isa], kinst.PORTS[image.isa]
    counts: Counter[tuple[str, Rule]] = Counter()
    for symbol in symbols.between(low, high):
        if symbol.type not in {"t", "T", "w", "W"}:
            continue
        at = symbol.value - first
        body = image.data[at : at + symbol.size].rstrip(_FILL.get(image.isa, b""))
        for offset in fasttrap_port.boundaries(body):
            code = Code.at(body, offset, symbol.value + offset, longest=_LONGEST, around=REACH)
            decision = port.treat(code)
            counts[_WHAT[type(decision)], decision.rule] += 1
    return image.isa, [
        UserCount(what, rule.name, count, rule.why, rule.source, rule.quirk) for (what, rule), count in counts.items()
    ]


def _counted(folder: Path, errors: list[str]) -> Iterator[tuple[str, str, list[UserCount]]]:
    """Yield kind, ISA and counts of each file of a package."""
    isa = ""
    for path in sorted((folder / "boot").glob("vmlinu[xz]-*")):
        try:
            isa, found = _kernel(path)
        except KernelFileError as error:
            errors.append(str(error))
        else:
            yield "kernels", isa, found
    for path in sorted([*folder.rglob("*.ko"), *folder.rglob("*.ko.xz")]):
        try:
            yield "modules", isa, _module(path)
        except SitesError:  # one that is only data: it has no function
            yield "without_functions", isa, []
        except ElfError as error:
            errors.append(f"{path.name}: {error}")


def _sweep(folder: Path) -> tuple[str, dict[str, Any]]:
    """Return the ISA of a package's kernel, and its totals."""
    files: Counter[str] = Counter()
    treated: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    errors: list[str] = []
    isa = ""
    for kind, isa, found in _counted(folder, errors):  # noqa: B007  the last one's
        files[kind] += 1
        for one in found:
            treated[one.what] += one.count
            if one.what == "refused":
                refused[f"{one.rule}: {one.why}"] += one.count
                if not (one.rule and one.why and one.source):
                    errors.append(f"a refusal by a rule without name, reason or source: {one}")
    return isa, {
        **files,
        "instructions": sum(treated.values()),
        **{what: treated[what] for what in ("emulated", "out of line", "refused")},
        "refusals": dict(refused.most_common()),
        "errors": errors,
    }


def main() -> int:
    """Sweep the packages that are named; 1 if there was an error."""
    failed = False
    for folder in sys.argv[1:]:
        isa, totals = _sweep(Path(folder))
        saved = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
        saved[isa] = stamped(totals)
        RESULTS.write_text(json.dumps({one: saved[one] for one in ISAS if one in saved}, indent=1) + "\n")
        print(f"{isa}: {totals['instructions']:,} instructions, {len(totals['errors'])} errors")
        failed = failed or bool(totals["errors"])
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
