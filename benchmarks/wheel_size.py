"""The size of Trapline's wheel by part, and what other ways to pack the guests would give.

    python -m build --wheel
    python -m benchmarks.wheel_size dist/trapline-*.whl

The results are saved, and `benchmarks.prose` writes them into CONTRIBUTING.md.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.provenance import save
from benchmarks.tables import table

SAVED: Final = Path(__file__).parent / "results" / "wheel_size.json"
GUESTS: Final = "testbins/built/"
# The beginning of a file's name in the wheel -> its part; the first that fits.
PARTS: Final[Mapping[str, str]] = {
    f"{GUESTS}aarch64/": "guests of AArch64",
    f"{GUESTS}i386/": "guests of i386",
    f"{GUESTS}riscv64/": "guests of RISC-V",
    f"{GUESTS}x86_64/": "guests of x86-64",
    "trapline/lab/museum/": "museum",
    "trapline/lab/course/": "lab sheets",
    "trapline/lab/": "the other labs (`check`, `race`, `step`, `--object`)",
    "trapline/": "the other code of `trapline`",
    "providers/": "code of `providers`",
    "emu/": "code of `emu`",
    "": "metadata, manual page, completions",
}


def measured(wheel: Path) -> dict[str, Any]:
    """Return the files and bytes of each part of a wheel, and the guests packed in other ways.

    Raises OSError and `zipfile.BadZipFile`.
    """
    files: Counter[str] = Counter()
    packed: Counter[str] = Counter()
    unpacked: Counter[str] = Counter()
    guests: dict[str, list[bytes]] = {}
    with zipfile.ZipFile(wheel) as archive:
        for entry in archive.infolist():
            part = next(name for beginning, name in PARTS.items() if entry.filename.startswith(beginning))
            files[part] += 1
            packed[part] += entry.compress_size
            unpacked[part] += entry.file_size
            if entry.filename.startswith(GUESTS):
                guests.setdefault(part, []).append(archive.read(entry))
    rows = [[part, files[part], packed[part], unpacked[part]] for part in PARTS.values()]
    return {
        "wheel": wheel.stat().st_size,
        "columns": ["part", "files", "packed", "unpacked"],
        "rows": rows,
        "guests": {
            "packed": sum(packed[part] for part in guests),
            "xz": sum(map(_xz, (content for contents in guests.values() for content in contents))),
            **_archives(guests.values()),
        },
    }


def _xz(content: bytes) -> int:
    return len(lzma.compress(content, preset=9))


def _archives(guests: Iterable[Iterable[bytes]]) -> dict[str, float]:
    """Return the size of an archive for each ISA, and the CPU seconds to unpack the slowest one."""
    archives = [lzma.compress(b"".join(contents), preset=9) for contents in guests]
    seconds = []
    for archive in archives:
        start = time.process_time()
        lzma.decompress(archive)
        seconds.append(time.process_time() - start)
    return {"archives": sum(map(len, archives)), "unpacking": round(max(seconds), 2)}


def section() -> str:
    """Return the saved results as a table, and what follows from them."""
    saved = json.loads(SAVED.read_text("utf-8"))
    rows = [
        (part, f"{files:,}", _kilobytes(packed), _kilobytes(unpacked))
        for part, files, packed, unpacked in saved["rows"]
    ]
    guests = saved["guests"]
    return (
        f"{table(('part', 'files', 'kB in the wheel', 'kB installed'), rows)}\n\n"
        f"The wheel has {_kilobytes(saved['wheel'])} kB.\n"
        f"The guests are {_kilobytes(guests['packed'])} kB of it; each compressed by xz they would be "
        f"{_kilobytes(guests['xz'])} kB.\n"
        f"One archive of xz for each ISA would be {_kilobytes(guests['archives'])} kB for all, and take\n"
        f"{guests['unpacking']} CPU seconds to unpack."
    )


def _kilobytes(size: int) -> str:
    return f"{size / 1000:,.0f}"


def main() -> None:
    """Measure the wheel that is given, and save the result."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wheel_size", description=__doc__.split("\n", 1)[0])
    parser.add_argument("wheel", type=Path, metavar="WHEEL")
    try:
        found = measured(parser.parse_args().wheel)
    except (OSError, zipfile.BadZipFile) as error:
        sys.exit(f"the wheel cannot be read: {error}")
    save(SAVED, found)
    print(section())


if __name__ == "__main__":
    main()
